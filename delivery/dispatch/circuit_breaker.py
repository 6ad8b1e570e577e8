"""The circuit breaker of a host. After a number of failures in a row the host is not called for a pause. Then one
delivery is called as a probe. The pause doubles with each probe that fails, and the first success closes the breaker.
Pure: time is an argument.

    closed ──failures──▶ open ──pause over──▶ half open ──success──▶ closed
                          ▲──────longer pause, failure──────┘
"""

from dataclasses import dataclass, replace
from enum import Enum


class BreakerChange(Enum):
    """What the end of a call did to a breaker."""

    OPENED = "opened"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """The limits of all breakers, from the settings BREAKER_…; pauses are in seconds."""

    failures: int = 10
    first_pause: float = 5.0
    longest_pause: float = 300.0


@dataclass(frozen=True, slots=True)
class Breaker:
    """The state of one breaker. Its host has failed at least once since the last success."""

    changed_at: float
    failures: int = 0
    pause: float = 0.0
    open_until: float | None = None  # None: closed

    @property
    def is_tripped(self) -> bool:
        """Whether the breaker is open or half open."""
        return self.open_until is not None

    def calls_allowed(self, limit: int, now: float) -> int:
        """Return how many calls to the host may be under way; `limit` is the number for a closed breaker."""
        if self.open_until is None:
            return limit
        return 0 if now < self.open_until else 1


def after_failure(breaker: Breaker, policy: BreakerPolicy, began_at: float, now: float) -> Breaker:
    """Return the breaker after a call that failed; `began_at` is when the call began."""
    if breaker.open_until is None:
        failures = breaker.failures + 1
        if failures < policy.failures:
            return replace(breaker, failures=failures, changed_at=now)
        return Breaker(now, failures, policy.first_pause, now + policy.first_pause)
    if began_at < breaker.open_until:
        return breaker  # the call is no probe: it began before the breaker opened, however late it ended
    pause = min(policy.longest_pause, 2 * breaker.pause)
    return Breaker(now, breaker.failures + 1, pause, now + pause)
