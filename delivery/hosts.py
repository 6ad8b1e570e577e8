"""Who may be called now: rows of ours, calls and breakers, host by host, in this process. Pure: time is given.

A host that answers quickly may have more rows than calls: the others wait here, for a moment, so that the next call
begins when one is over and rows are claimed by the dozen. One that is slow, unknown or failing has none to spare.

Only hosts that were called of late, or have failures behind them, are remembered: memory follows what goes on, not how
many hosts there are.
"""

from dataclasses import dataclass, field
from enum import Enum

from delivery.breaker import Breaker, BreakerPolicy, after_failure

FORGET_AFTER = 600.0
LOOK_FOR_FORGOTTEN_EVERY = 10.0
# What waits here should be on its way within this time, and is never more than so many times the calls at a time: of
# its host, and in all.
AHEAD_SECONDS = 0.5
MOST_AHEAD = 16
MOST_WAITING = 4
# Outcomes that may wait to be written, times the calls at a time: beyond that the database is down or behind, and
# nobody is called whose outcome could not be kept.
MOST_UNWRITTEN = 2
# How much the last call counts in what a host is thought to take.
NEWEST_SHARE = 0.2


class BreakerChange(Enum):
    OPENED = "opened"
    CLOSED = "closed"


@dataclass(slots=True)
class _Busy:
    waiting: int = 0  # rows of ours that are not called yet
    calling: int = 0


AT_REST = _Busy()


@dataclass(slots=True)
class Hosts:
    max_in_flight: int
    max_per_host: int
    policy: BreakerPolicy
    _busy: dict[str, _Busy] = field(default_factory=dict)
    _pace: dict[str, float] = field(default_factory=dict)  # seconds that a call takes, lately
    _waiting: int = 0
    _calling: int = 0
    _unwritten: int = 0
    _breakers: dict[str, Breaker] = field(default_factory=dict)
    _tripped: set[str] = field(default_factory=set)  # of those, the ones that are not closed
    _looked_at: float = 0.0

    @property
    def in_flight(self) -> int:
        return self._calling

    @property
    def free(self) -> int:
        """How many rows may be claimed. What a quick host has waiting takes nobody's place."""
        if self._too_much_is_unwritten:
            return 0
        # Whatever a host has waiting, it can use no more places than it may have calls.
        promised = sum(
            min(max(0, busy.waiting - self._ahead(host, busy)), max(0, self.max_per_host - busy.calling))
            for host, busy in self._busy.items()
        )
        return max(0, self.max_in_flight - self._calling - promised)

    @property
    def tripped(self) -> int:
        """Breakers that are not closed."""
        return len(self._tripped)

    def breaker_of(self, host: str) -> Breaker | None:
        return self._breakers.get(host)

    def room_of(self, host: str, now: float) -> int:
        """How many more rows of the host may be claimed."""
        busy = self._busy.get(host, AT_REST)
        return max(0, self._calls_allowed(host, now) + self._ahead(host, busy) - busy.calling - busy.waiting)

    def is_quick(self, host: str) -> bool:
        """Whether it may have rows waiting here."""
        return self._ahead_in_time(host) > 0

    def takes_within(self, host: str, rows: int, seconds: float) -> bool:
        """Whether it will have answered so many within so many seconds, at its pace."""
        pace = None if host in self._breakers else self._pace.get(host)
        return pace is not None and rows * pace <= seconds * self.max_per_host

    @property
    def most_waiting_of_one(self) -> int:
        return MOST_AHEAD * self.max_per_host

    def exceptions(self, now: float) -> dict[str, int]:
        """Room of the hosts for which it is not simply the limit per host; as for a quick one at rest, that will do."""
        return {host: self.room_of(host, now) for host in self._busy.keys() | self._tripped}

    def wants_more(self, host: str, now: float) -> bool:
        """Whether a claim is worth its while: not for every single row, if there are enough to go on with."""
        busy = self._busy.get(host, AT_REST)
        return self.room_of(host, now) > 0 and 2 * busy.waiting <= self._ahead(host, busy)

    def take(self, host: str) -> None:
        """A row of the host is ours."""
        self._busy.setdefault(host, _Busy()).waiting += 1
        self._waiting += 1

    def let_go(self, host: str) -> None:
        """It is not, after all."""
        self._change(host, waiting=-1)

    @property
    def has_a_place(self) -> bool:
        """For one more call, whoever it is to."""
        return self._calling < self.max_in_flight and not self._too_much_is_unwritten

    def may_start(self, host: str, now: float) -> bool:
        return self.has_a_place and self._busy.get(host, AT_REST).calling < self._calls_allowed(host, now)

    def start(self, host: str) -> None:
        """The call of a row that waited."""
        self._change(host, waiting=-1, calling=1)

    def pass_over(self, host: str) -> None:
        """It will not be called, which has to be written, too."""
        self._change(host, waiting=-1)
        self._unwritten += 1

    def hang_up(self, host: str) -> None:
        """The call is over: there is room for another one. Its outcome is to be written."""
        self._change(host, calling=-1)
        self._unwritten += 1

    def write_off(self) -> None:
        """Its outcome is written, or known to be void."""
        self._unwritten -= 1

    def report(self, host: str, *, well: bool, seconds: float, now: float) -> BreakerChange | None:
        before = self._breakers.get(host)
        if well:
            self._note_pace(host, seconds)
            self._breakers.pop(host, None)
            self._tripped.discard(host)
            return BreakerChange.CLOSED if before and before.is_tripped else None
        after = after_failure(before or Breaker(now), self.policy, now)
        self._breakers[host] = after
        if after.is_tripped:
            self._tripped.add(host)
        return BreakerChange.OPENED if after.is_tripped and not (before and before.is_tripped) else None

    def notice_slowness(self, host: str) -> None:
        """Rows of it have waited for too long, though its calls may not be over yet: until some are, and were quick,
        none of its rows wait here.
        """
        self._pace[host] = max(2 * self.max_per_host * AHEAD_SECONDS, self._pace.get(host, 0.0))

    def next_probe_in(self, now: float) -> float | None:
        """Seconds until the first open breaker lets a probe through."""
        moments = (self._breakers[host].open_until or 0.0 for host in self._tripped)
        return min((moment - now for moment in moments if moment > now), default=None)

    def forget_idle(self, now: float) -> None:
        """Hosts that nobody calls: how they were says nothing about today."""
        if now - self._looked_at < LOOK_FOR_FORGOTTEN_EVERY:
            return
        self._looked_at = now
        self._pace = {host: seconds for host, seconds in self._pace.items() if host in self._busy}
        for host, breaker in list(self._breakers.items()):
            quiet_since = max(breaker.changed_at, breaker.open_until or 0.0)
            if now - quiet_since > FORGET_AFTER and host not in self._busy:
                del self._breakers[host]
                self._tripped.discard(host)

    @property
    def _too_much_is_unwritten(self) -> bool:
        return self._unwritten >= MOST_UNWRITTEN * self.max_in_flight

    def _calls_allowed(self, host: str, now: float) -> int:
        breaker = self._breakers.get(host)
        return breaker.calls_allowed(self.max_per_host, now) if breaker else self.max_per_host

    def _change(self, host: str, waiting: int = 0, calling: int = 0) -> None:
        busy = self._busy[host]
        busy.waiting += waiting
        busy.calling += calling
        self._waiting += waiting
        self._calling += calling
        if not busy.waiting and not busy.calling:
            del self._busy[host]

    def _ahead(self, host: str, busy: _Busy) -> int:
        """How many of its rows may wait here while all its calls are under way."""
        left = max(0, MOST_WAITING * self.max_in_flight - self._waiting)
        return min(self._ahead_in_time(host), busy.waiting + left)

    def _ahead_in_time(self, host: str) -> int:
        """How many it will have answered soon, if it is known to be quick, and is well."""
        seconds = self._pace.get(host)
        if seconds is None or host in self._breakers:
            return 0
        return min(self.most_waiting_of_one, int(self.max_per_host * AHEAD_SECONDS / max(seconds, 0.001)))

    def _note_pace(self, host: str, seconds: float) -> None:
        known = self._pace.get(host, seconds)
        self._pace[host] = known + NEWEST_SHARE * (seconds - known)
