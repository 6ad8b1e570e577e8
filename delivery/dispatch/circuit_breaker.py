"""A circuit breaker, one for each host. After so many failures in a row the host is not called for a pause; then one
delivery is called as a probe. The pause doubles with every probe that fails, and the first success ends it. Pure: time
is passed in.

    closed ──failures──▶ open ──pause over──▶ half open ──success──▶ closed
                          ▲──────longer pause, failure──────┘
"""

from dataclasses import dataclass, replace
from enum import Enum


class BreakerChange(Enum):
    OPENED = "opened"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    failures: int = 10
    first_pause: float = 5.0
    longest_pause: float = 300.0


@dataclass(frozen=True, slots=True)
class Breaker:
    changed_at: float
    failures: int = 0
    pause: float = 0.0
    open_until: float | None = None  # None: closed

    @property
    def is_tripped(self) -> bool:
        """Whether it is open or half open."""
        return self.open_until is not None

    def calls_allowed(self, limit: int, now: float) -> int:
        if self.open_until is None:
            return limit
        return 0 if now < self.open_until else 1


def after_failure(breaker: Breaker, policy: BreakerPolicy, now: float) -> Breaker:
    if breaker.open_until is None:
        failures = breaker.failures + 1
        if failures < policy.failures:
            return replace(breaker, failures=failures, changed_at=now)
        return Breaker(now, failures, policy.first_pause, now + policy.first_pause)
    if now < breaker.open_until:
        return breaker  # this call began before the breaker opened
    pause = min(policy.longest_pause, 2 * breaker.pause)
    return Breaker(now, breaker.failures + 1, pause, now + pause)
