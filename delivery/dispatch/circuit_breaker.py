"""A circuit breaker for each host. After so many failures in a row the host is not called for a pause; then one
delivery is called as a probe. The pause doubles with every probe that fails, and the first success ends it. Pure: time
is passed in.

    closed ──failures──▶ open ──pause over──▶ half open ──success──▶ closed
                          ▲──────longer pause, failure──────┘
"""

from collections.abc import Container
from dataclasses import dataclass, field, replace
from enum import Enum

FORGET_AFTER_SECONDS = 600.0


class BreakerChange(Enum):
    OPENED = "opened"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    failures: int = 10
    first_pause: float = 5.0
    longest_pause: float = 300.0


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    changed_at: float
    failures: int = 0
    pause: float = 0.0
    open_until: float | None = None  # None: closed

    @property
    def is_open(self) -> bool:
        """Whether the breaker is open or half open."""
        return self.open_until is not None

    def calls_allowed(self, limit: int, now: float) -> int:
        if self.open_until is None:
            return limit
        return 0 if now < self.open_until else 1

    def after_failure(self, policy: BreakerPolicy, now: float) -> "CircuitBreaker":
        if self.open_until is None:
            failures = self.failures + 1
            if failures < policy.failures:
                return replace(self, failures=failures, changed_at=now)
            return CircuitBreaker(now, failures, policy.first_pause, now + policy.first_pause)
        if now < self.open_until:
            return self  # this call began before the breaker opened
        pause = min(policy.longest_pause, 2 * self.pause)
        return CircuitBreaker(now, self.failures + 1, pause, now + pause)


@dataclass(slots=True)
class CircuitBreakers:
    """The breakers of all hosts that have failures behind them. A host without a breaker is well."""

    policy: BreakerPolicy
    _breakers: dict[str, CircuitBreaker] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)

    def __contains__(self, host: str) -> bool:
        return host in self._breakers

    def get(self, host: str) -> CircuitBreaker | None:
        return self._breakers.get(host)

    @property
    def open_hosts(self) -> frozenset[str]:
        """The hosts whose breakers are open or half open."""
        return frozenset(self._open)

    def calls_allowed(self, host: str, limit: int, now: float) -> int:
        breaker = self._breakers.get(host)
        return breaker.calls_allowed(limit, now) if breaker else limit

    def note_success(self, host: str) -> BreakerChange | None:
        was_open = host in self._open
        self._remove(host)
        return BreakerChange.CLOSED if was_open else None

    def note_failure(self, host: str, now: float) -> BreakerChange | None:
        was_open = host in self._open
        breaker = self._breakers.get(host, CircuitBreaker(now)).after_failure(self.policy, now)
        self._breakers[host] = breaker
        if breaker.is_open:
            self._open.add(host)
        return BreakerChange.OPENED if breaker.is_open and not was_open else None

    def next_probe_in(self, now: float) -> float | None:
        """Seconds until the first open breaker lets a probe through."""
        moments = (self._breakers[host].open_until or 0.0 for host in self._open)
        return min((moment - now for moment in moments if moment > now), default=None)

    def forget_idle(self, busy: Container[str], now: float) -> None:
        """Remove breakers of hosts that were not called for long: old failures say nothing about today."""
        for host, breaker in list(self._breakers.items()):
            quiet_since = max(breaker.changed_at, breaker.open_until or 0.0)
            if now - quiet_since > FORGET_AFTER_SECONDS and host not in busy:
                self._remove(host)

    def _remove(self, host: str) -> None:
        self._breakers.pop(host, None)
        self._open.discard(host)
