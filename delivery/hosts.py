"""Who may be called now: calls in flight and breakers, host by host, in this process. Pure: time is given.

Only hosts that differ from the rule are remembered (a call in flight, failures behind them), so memory follows what
goes on, not how many hosts there are.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from delivery.breaker import Breaker, BreakerPolicy, after_failure

FORGET_AFTER = 600.0
LOOK_FOR_FORGOTTEN_EVERY = 10.0


class BreakerChange(Enum):
    OPENED = "opened"
    CLOSED = "closed"


@dataclass(slots=True)
class Hosts:
    max_in_flight: int
    max_per_host: int
    policy: BreakerPolicy
    _in_flight: Counter[str] = field(default_factory=Counter)
    _total: int = 0
    _breakers: dict[str, Breaker] = field(default_factory=dict)
    _tripped: set[str] = field(default_factory=set)  # of those, the ones that are not closed
    _looked_at: float = 0.0

    @property
    def in_flight(self) -> int:
        return self._total

    @property
    def free(self) -> int:
        return self.max_in_flight - self._total

    @property
    def tripped(self) -> int:
        """Breakers that are not closed."""
        return len(self._tripped)

    def breaker_of(self, host: str) -> Breaker | None:
        return self._breakers.get(host)

    def room_of(self, host: str, now: float) -> int:
        """How many more calls the host may get."""
        breaker = self._breakers.get(host)
        allowed = breaker.calls_allowed(self.max_per_host, now) if breaker else self.max_per_host
        return max(0, allowed - self._in_flight[host]) if host in self._in_flight else allowed

    def exceptions(self, now: float) -> dict[str, int]:
        """Room of the hosts for which it is not simply the limit per host."""
        return {host: self.room_of(host, now) for host in self._in_flight.keys() | self._tripped}

    def take(self, host: str) -> None:
        self._in_flight[host] += 1
        self._total += 1

    def release(self, host: str) -> None:
        """As if it had never been taken."""
        self.hang_up(host)
        self.write_off()

    def hang_up(self, host: str) -> None:
        """The call is over: its host has room for another one. It counts in all until it is written off."""
        self._in_flight[host] -= 1
        if not self._in_flight[host]:
            del self._in_flight[host]

    def write_off(self) -> None:
        """Its outcome is written, or known to be void."""
        self._total -= 1

    def report(self, host: str, *, well: bool, now: float) -> BreakerChange | None:
        before = self._breakers.get(host)
        if well:
            self._breakers.pop(host, None)
            self._tripped.discard(host)
            return BreakerChange.CLOSED if before and before.is_tripped else None
        after = after_failure(before or Breaker(now), self.policy, now)
        self._breakers[host] = after
        if after.is_tripped:
            self._tripped.add(host)
        return BreakerChange.OPENED if after.is_tripped and not (before and before.is_tripped) else None

    def next_probe_in(self, now: float) -> float | None:
        """Seconds until the first open breaker lets a probe through."""
        moments = (self._breakers[host].open_until or 0.0 for host in self._tripped)
        return min((moment - now for moment in moments if moment > now), default=None)

    def forget_idle(self, now: float) -> None:
        """Hosts that nobody has called for a while: their old failures say nothing about today."""
        if now - self._looked_at < LOOK_FOR_FORGOTTEN_EVERY:
            return
        self._looked_at = now
        for host, breaker in list(self._breakers.items()):
            quiet_since = max(breaker.changed_at, breaker.open_until or 0.0)
            if now - quiet_since > FORGET_AFTER and host not in self._in_flight:
                del self._breakers[host]
                self._tripped.discard(host)
