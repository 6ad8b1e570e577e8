"""Which events may be ours as soon as they are stored. A row that is stored while its host has room is stored with a
lease of ours, and its call begins at once: nobody has to claim it, which is a third of what a delivery costs Postgres.

Nobody is overtaken by that: a host that has rows waiting in the table gets its next ones by claims, the oldest first.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from delivery.hosts import Hosts

# A host that is this close to having room for a batch is worth waiting for: see `has_room_soon`.
SOON = 0.05


@dataclass(slots=True)
class Admission:
    hosts: Hosts
    _behind: set[str] = field(default_factory=set)  # hosts with rows that are due and nobody's, as far as we know
    _stored_since: set[str] = field(default_factory=set)  # those of them that a claim under way may not see

    def reserve(self, wanted: Sequence[str], now: float) -> list[bool]:
        """For each row of a host: whether there is room for it, which is then taken. A quick host's rows wait for their
        calls and take nobody's place; the others' may be no more than there are places.
        """
        free, rooms = self.hosts.free, {host: self._room_of(host, now) for host in set(wanted)}
        quick = {host for host in rooms if self.hosts.is_quick(host)}
        granted = []
        for host in wanted:
            grants = free > 0 and rooms[host] > 0
            if grants:
                self.hosts.take(host)
                rooms[host] -= 1
                free -= host not in quick
            granted.append(grants)
        return granted

    def has_room_soon(self, wanted: Counter[str], now: float) -> bool:
        """Whether some of them have no room now, and will have it within a moment."""
        return any(
            self._room_of(host, now) < min(rows, self.hosts.most_waiting_of_one // 2)
            for host, rows in wanted.items()
            if self.hosts.takes_within(host, rows, SOON)
        )

    def leave_behind(self, hosts: Iterable[str]) -> None:
        """Rows of theirs were stored, and are for whoever claims them."""
        left = set(hosts)
        self._behind |= left
        self._stored_since |= left

    def begin_look(self) -> None:
        """What is stored from here on, a claim may not see any more."""
        self._stored_since.clear()

    def end_look(self, behind: Iterable[str]) -> None:
        self._behind = self._stored_since.union(behind)

    def _room_of(self, host: str, now: float) -> int:
        return 0 if host in self._behind else self.hosts.room_of(host, now)
