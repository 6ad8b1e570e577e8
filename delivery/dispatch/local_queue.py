"""The deliveries that this process has claimed, and the place of each. Pure: no I/O, and time is an argument.

A delivery is in exactly one place. Each arrow is one method of `LocalQueue`, and no other class writes to it.

| place     | which rows are there                                          | left by, and for which place             |
| --------- | ------------------------------------------------------------- | ---------------------------------------- |
| reserved  | a claim has found the row; its transaction is not committed   | `reservation`: waiting; gone if it fails |
| waiting   | the row is leased to this process; its call has not begun     | `start_next`: calling                    |
|           |                                                               | `withdraw_…`: unwritten, without a call  |
| calling   | its call is under way                                         | `end_call`: unwritten                    |
| unwritten | the result of its call, or that there was none, is not yet in | `note_written`: gone                     |
|           | Postgres                                                      |                                          |
| gone      | this process does not have the row                            | `reservation`: reserved                  |

Limits. There is a limit on all calls and one on the calls to each host, which is lower while its breaker is open. A
claim gets room only for rows whose calls can begin at once. A host that answers fast is an exception: a few of its rows
may wait here, so that its next call begins when one ends, and a claim brings dozens of rows. They take no room from
other hosts. While too many rows are unwritten, because Postgres is down or slow, no call begins and no row is claimed.
So memory follows the limits, not the number of rows in the table.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from delivery.dispatch.circuit_breaker import Breaker, BreakerChange, BreakerPolicy
from delivery.dispatch.host_state import HostStates
from delivery.errors import NotInPlace
from delivery.model import Delivery

# Multiples of the calls that are allowed in all.
MAX_WAITING_PER_CALL = 4
MAX_UNWRITTEN_PER_CALL = 2
# A row that waits here for longer is given back. Another replica, or a later claim, may call it sooner.
MAX_WAIT_SECONDS = 2.0
FORGET_EVERY_SECONDS = 10.0


class LeasedDelivery(msgspec.Struct, frozen=True, gc=False):
    """A row that is leased to this process. Times are by time.monotonic()."""

    delivery: Delivery
    leased_at: float  # not later than the moment at which the lease began in Postgres
    ready_at: float  # when its claim was committed


class Room(NamedTuple):
    """How many rows may be claimed: in total, for each host, and for the hosts that are exceptions."""

    total: int
    per_host: int
    exceptions: Mapping[str, int]


@dataclass(slots=True)
class Reservation:
    """The rows that one claim has found. `LocalQueue.reservation` moves them on when its block ends."""

    _reserve: Callable[[Delivery], None]
    rows: list[Delivery] = field(default_factory=list)
    committed_at: float | None = None

    def add(self, found: Sequence[Delivery]) -> None:
        """Move rows from gone to reserved: from now on they take room."""
        for delivery in found:
            self._reserve(delivery)
            self.rows.append(delivery)

    def commit(self, now: float) -> None:
        """Note that the transaction of the claim is committed: the rows are leased to this process."""
        self.committed_at = now


class Counts(NamedTuple):
    """How many rows are in each place."""

    reserved: int
    waiting: int
    calling: int
    unwritten: int


@dataclass(slots=True)
class _HostRows:
    reserved: int = 0
    waiting: deque[LeasedDelivery] = field(default_factory=deque)
    calling: int = 0

    @property
    def not_called(self) -> int:
        return self.reserved + len(self.waiting)


NO_ROWS = _HostRows()


class LocalQueue:
    """The only writer of the places of rows, and of what is known about hosts."""

    def __init__(self, max_calls: int, max_calls_per_host: int, breaker_policy: BreakerPolicy) -> None:
        self.max_calls = max_calls
        self.max_calls_per_host = max_calls_per_host
        self._states = HostStates(max_calls_per_host, breaker_policy)
        # Only hosts with rows here, in the order in which their rows began to wait.
        self._hosts: dict[str, _HostRows] = {}
        self._not_called = 0
        self._calling = 0
        self._unwritten = 0
        self._forgot_at = 0.0

    # How much may be claimed or called.

    @property
    def calls(self) -> int:
        """The number of calls under way."""
        return self._calling

    @property
    def open_breakers(self) -> int:
        """The number of hosts whose breakers are open or half open."""
        return len(self._states.tripped)

    def breaker_of(self, host: str) -> Breaker | None:
        """Return the breaker of a host, or None if the host has not failed since its last success."""
        return self._states.breaker_of(host)

    def seconds_until_probes(self, now: float, limit: int) -> dict[str, float]:
        """Return hosts whose breakers are open, at most `limit`, with the seconds until each may be called again."""
        return self._states.seconds_until_probes(now, limit)

    def next_probe_in(self, now: float) -> float | None:
        """Return the seconds until the first open breaker allows a probe. None: no breaker is open."""
        return self._states.next_probe_in(now)

    def counts(self) -> Counts:
        """Count the rows in each place."""
        reserved = sum(rows.reserved for rows in self._hosts.values())
        return Counts(reserved, self._not_called - reserved, self._calling, self._unwritten)

    @property
    def free(self) -> int:
        """How many rows may be claimed in total.

        Rows that wait for a fast host take no room from other hosts. All rows of one host together take no more room
        than the host may have calls.
        """
        if self._too_many_unwritten:
            return 0
        planned = sum(
            min(max(0, rows.not_called - self._ahead(host, rows)), max(0, self.max_calls_per_host - rows.calling))
            for host, rows in self._hosts.items()
        )
        return max(0, self.max_calls - self._calling - planned)

    def room(self, now: float) -> Room:
        """Return how many rows a claim may take. Hosts with rows here and hosts with an open breaker are exceptions.

        A fast host without rows here is no exception: the limit per host is enough for its first claim, and there may
        be thousands of such hosts.
        """
        exceptions = {host: self.room_of(host, now) for host in self._hosts.keys() | self._states.tripped}
        return Room(self.free, self.max_calls_per_host, exceptions)

    def room_of(self, host: str, now: float) -> int:
        """Return how many more rows of the host may be claimed."""
        rows = self._hosts.get(host, NO_ROWS)
        return max(0, self._states.calls_allowed(host, now) + self._ahead(host, rows) - rows.calling - rows.not_called)

    def wants_more(self, host: str, now: float) -> bool:
        """Tell whether a claim for the host is worth its cost: only if fewer than half of the rows that may wait do
        wait.
        """
        rows = self._hosts.get(host, NO_ROWS)
        return 2 * rows.not_called <= self._ahead(host, rows) and self.room_of(host, now) > 0

    # The moves of rows.

    @contextmanager
    def reservation(self, leased_at: float) -> Iterator[Reservation]:
        """Use it around the transaction of a claim. Added rows are reserved until the block ends.

        Then they move to waiting if the reservation was committed. If not, they are gone: the transaction was rolled
        back, or its result is unknown, and the leases end by themselves.
        """
        reservation = Reservation(self._reserve)
        try:
            yield reservation
        finally:
            for delivery in reservation.rows:
                if reservation.committed_at is None:
                    self._release(delivery)
                else:
                    self._accept(LeasedDelivery(delivery, leased_at, reservation.committed_at))

    def start_next(self, host: str, now: float) -> LeasedDelivery | None:
        """Move the oldest waiting row of the host to calling, if the limits allow a call."""
        rows = self._hosts.get(host, NO_ROWS)
        if not rows.waiting or not self._may_call or rows.calling >= self._states.calls_allowed(host, now):
            return None
        leased = rows.waiting.popleft()
        rows.calling += 1
        self._not_called -= 1
        self._calling += 1
        return leased

    def start_all(self, now: float) -> list[LeasedDelivery]:
        """Move every waiting row whose call may begin to calling. Hosts that have waited the longest come first."""
        started = []
        for host in list(self._hosts):
            if not self._may_call:
                break
            while leased := self.start_next(host, now):
                started.append(leased)
        return started

    def end_call(self, host: str) -> None:
        """Move a row of the host from calling to unwritten: the host may be called again."""
        rows = self._hosts.get(host, NO_ROWS)
        if not rows.calling:
            raise NotInPlace(f"no call to {host} is under way")
        rows.calling -= 1
        self._calling -= 1
        self._unwritten += 1
        self._drop_if_empty(host, rows)

    def withdraw_host(self, host: str) -> list[Delivery]:
        """Move all waiting rows of the host to unwritten. The caller gives them back."""
        return self._withdraw(host, len(self._hosts.get(host, NO_ROWS).waiting))

    def withdraw_uncallable(self, now: float) -> list[Delivery]:
        """Move waiting rows of hosts whose breaker is open to unwritten. The caller gives them back.

        Such rows come from a claim that was under way when the breaker opened.
        """
        blocked = [host for host in self._states.tripped if self._states.calls_allowed(host, now) == 0]
        return [delivery for host in blocked for delivery in self.withdraw_host(host)]

    def withdraw_all(self) -> list[Delivery]:
        """Move every waiting row to unwritten. The caller gives them back."""
        return [delivery for host in list(self._hosts) for delivery in self.withdraw_host(host)]

    def withdraw_stale(self, now: float) -> list[Delivery]:
        """Move rows that have waited for too long to unwritten. The caller gives them back.

        Their hosts count as slow from now on: otherwise the same rows would be claimed again at once.
        """
        withdrawn = []
        for host, rows in list(self._hosts.items()):
            stale = sum(leased.ready_at < now - MAX_WAIT_SECONDS for leased in rows.waiting)
            if stale:
                self._states.note_long_wait(host)
                withdrawn += self._withdraw(host, stale)
        return withdrawn

    def note_written(self, number: int) -> None:
        """Move rows from unwritten to gone: their updates are in Postgres, or void because a lease was lost."""
        if number > self._unwritten:
            raise NotInPlace(f"{number} outcomes were written, and {self._unwritten} were to be")
        self._unwritten -= number

    # What is known about hosts.

    def report(self, host: str, *, healthy: bool, seconds: float, now: float) -> BreakerChange | None:
        """Note that a call to the host has ended. This may open or close the host's breaker."""
        if healthy:
            return self._states.note_success(host, seconds)
        return self._states.note_failure(host, now - seconds, now)

    def forget_idle(self, now: float) -> None:
        """Forget speeds and old failures of hosts without rows here, every ten seconds."""
        if now - self._forgot_at >= FORGET_EVERY_SECONDS:
            self._forgot_at = now
            self._states.forget_idle(self._hosts, now)

    @property
    def _too_many_unwritten(self) -> bool:
        return self._unwritten >= MAX_UNWRITTEN_PER_CALL * self.max_calls

    @property
    def _may_call(self) -> bool:
        """Whether one more call may begin, to any host."""
        return self._calling < self.max_calls and not self._too_many_unwritten

    def _ahead(self, host: str, rows: _HostRows) -> int:
        """Return how many rows of the host may wait here while all its calls are under way."""
        left = max(0, MAX_WAITING_PER_CALL * self.max_calls - self._not_called)
        # Rows whose calls can begin at once are not ahead: counted as such, they would let claims pass the limit.
        ahead = max(0, rows.not_called - max(0, self.max_calls_per_host - rows.calling))
        return min(self._states.rows_ahead(host), ahead + left)

    def _reserve(self, delivery: Delivery) -> None:
        self._hosts.setdefault(delivery.host, _HostRows()).reserved += 1
        self._not_called += 1

    def _release(self, delivery: Delivery) -> None:
        rows = self._hosts[delivery.host]
        rows.reserved -= 1
        self._not_called -= 1
        self._drop_if_empty(delivery.host, rows)

    def _accept(self, leased: LeasedDelivery) -> None:
        host = leased.delivery.host
        rows = self._hosts[host]
        if not rows.waiting:
            self._hosts[host] = self._hosts.pop(host)  # to the end: hosts whose rows wait already come first
        rows.reserved -= 1
        rows.waiting.append(leased)

    def _withdraw(self, host: str, number: int) -> list[Delivery]:
        if not number:
            return []
        rows = self._hosts[host]
        withdrawn = [rows.waiting.popleft().delivery for _ in range(number)]
        self._not_called -= number
        self._unwritten += number
        self._drop_if_empty(host, rows)
        return withdrawn

    def _drop_if_empty(self, host: str, rows: _HostRows) -> None:
        if not rows.not_called and not rows.calling:
            del self._hosts[host]
