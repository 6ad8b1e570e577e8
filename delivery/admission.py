"""Which events may be ours as soon as they are stored. A row that is stored while its host has room is stored with a
lease of ours, and its call begins at once: nobody has to claim it, which is a third of what a delivery costs Postgres.

Nobody is overtaken by that: a host that has rows waiting in the table gets its next ones by claims, the oldest first.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from delivery.hosts import Hosts

# A host that is this close to having room for a batch is worth waiting for: see `worth_waiting_for`.
SOON = 0.05
# Hosts that are remembered to have rows in the table. Beyond that, new rows of some may overtake old ones.
MOST_BEHIND = 1000


@dataclass(slots=True)
class Admission:
    hosts: Hosts
    _behind: set[str] = field(default_factory=set)  # hosts with rows that are due and nobody's, as far as we know
    _stored_since: set[str] = field(default_factory=set)  # those of them that a claim under way may not see
    _awaited_in_vain: set[str] = field(default_factory=set)  # until a claim has left nothing of theirs behind

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

    def worth_waiting_for(self, wanted: Counter[str], now: float) -> set[str]:
        """Hosts that have no room for their rows now, and will have it within a moment. None if they are but a few of
        the rows: one host that has more than it can take must not hold up what is for others.
        """
        awaited = {
            host
            for host, rows in wanted.items()
            if host not in self._awaited_in_vain
            and self.hosts.takes_within(host, rows, SOON)
            and self._room_of(host, now) < min(rows, self.hosts.most_waiting_of_one // 2)
        }
        return awaited if 2 * sum(wanted[host] for host in awaited) > wanted.total() else set()

    def give_up_on(self, hosts: Iterable[str]) -> None:
        """They did not have room in time. Their rows wait for a claim until all that they have in the table is gone."""
        self._awaited_in_vain.update(hosts)

    @property
    def behind(self) -> frozenset[str]:
        """Hosts that are thought to have rows in the table that are due and nobody's."""
        return frozenset(self._behind)

    def leave_behind(self, hosts: Iterable[str]) -> None:
        """Rows of theirs were stored, and are for whoever claims them."""
        for host in set(hosts):
            if host in self._behind or len(self._behind) < MOST_BEHIND:
                self._behind.add(host)
                self._stored_since.add(host)

    def begin_look(self) -> None:
        """What is stored from here on, a claim may not see any more."""
        self._stored_since.clear()

    def end_look(self, behind: Iterable[str]) -> None:
        """`behind` are the hosts whose rows it saw, and did not take all of."""
        self._behind = self._stored_since.union(islice(behind, MOST_BEHIND))
        self._awaited_in_vain &= self._behind

    def _room_of(self, host: str, now: float) -> int:
        return 0 if host in self._behind else self.hosts.room_of(host, now)
