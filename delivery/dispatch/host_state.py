"""What this process knows about the hosts that it calls: their circuit breakers, and how fast they answer. It forgets
hosts that have no rows here and no recent failures. Pure: time is an argument.
"""

from collections.abc import Container
from dataclasses import dataclass, field

from delivery.dispatch.circuit_breaker import Breaker, BreakerChange, BreakerPolicy, after_failure

FORGET_AFTER_SECONDS = 600.0
# Rows may wait in this process while all allowed calls to their host are under way. The two limits: a row should be
# called within so many seconds, and a host has at most so many waiting rows for each call that it is allowed.
MAX_AHEAD_SECONDS = 0.5
MAX_AHEAD_ROWS_PER_CALL = 16
# The weight of the newest call in the average time of a host's calls.
NEWEST_CALL_WEIGHT = 0.2


@dataclass(slots=True)
class HostStates:
    """The state of each host. `LocalQueue` is the only writer."""

    max_calls_per_host: int
    policy: BreakerPolicy
    _seconds: dict[str, float] = field(default_factory=dict)  # how long a call takes: a moving average
    _breakers: dict[str, Breaker] = field(default_factory=dict)  # of hosts that have failed since their last success
    _tripped: set[str] = field(default_factory=set)

    @property
    def tripped(self) -> frozenset[str]:
        """The hosts whose breakers are open or half open."""
        return frozenset(self._tripped)

    def breaker_of(self, host: str) -> Breaker | None:
        """Return the breaker of a host, or None if the host has not failed since its last success."""
        return self._breakers.get(host)

    def calls_allowed(self, host: str, now: float) -> int:
        """Return how many calls to the host may be under way."""
        breaker = self._breakers.get(host)
        return breaker.calls_allowed(self.max_calls_per_host, now) if breaker else self.max_calls_per_host

    def rows_ahead(self, host: str) -> int:
        """Return how many rows of the host may wait here while all its calls are under way.

        It is the number of rows that the host answers within half a second: 0 for a host that is slow, failing or not
        known yet.
        """
        seconds = self._seconds.get(host)
        if seconds is None or host in self._breakers:
            return 0
        ahead = int(self.max_calls_per_host * MAX_AHEAD_SECONDS / max(seconds, 0.001))
        return min(MAX_AHEAD_ROWS_PER_CALL * self.max_calls_per_host, ahead)

    def note_success(self, host: str, seconds: float) -> BreakerChange | None:
        """Note a call that the host answered, and not with an error of its own: its breaker closes."""
        known = self._seconds.get(host, seconds)
        self._seconds[host] = known + NEWEST_CALL_WEIGHT * (seconds - known)
        was_tripped = host in self._tripped
        self._remove_breaker(host)
        return BreakerChange.CLOSED if was_tripped else None

    def note_failure(self, host: str, began_at: float, now: float) -> BreakerChange | None:
        """Note a call that failed because of the host: its breaker may open."""
        was_tripped = host in self._tripped
        breaker = after_failure(self._breakers.get(host) or Breaker(now), self.policy, began_at, now)
        self._breakers[host] = breaker
        if breaker.is_tripped:
            self._tripped.add(host)
        return BreakerChange.OPENED if breaker.is_tripped and not was_tripped else None

    def note_long_wait(self, host: str) -> None:
        """Treat the host as slow, because its rows waited here for too long. Calls may be under way that have not
        ended, so the average does not show it yet. Fast calls bring the average down again.
        """
        self._seconds[host] = max(2 * self.max_calls_per_host * MAX_AHEAD_SECONDS, self._seconds.get(host, 0.0))

    def next_probe_in(self, now: float) -> float | None:
        """Return the seconds until the first open breaker allows a probe. None: no breaker is open."""
        moments = (self._breakers[host].open_until or 0.0 for host in self._tripped)
        return min((moment - now for moment in moments if moment > now), default=None)

    def seconds_until_probes(self, now: float, limit: int) -> dict[str, float]:
        """Return hosts whose breakers are open, at most `limit`, with the seconds until each may be called again."""
        moments = {host: self._breakers[host].open_until or now for host in sorted(self._tripped)[:limit]}
        return {host: round(max(0.0, moment - now), 1) for host, moment in moments.items()}

    def forget_idle(self, busy: Container[str], now: float) -> None:
        """Forget the speed of hosts without rows here, and failures that are long ago. Both say little about the host
        now, and memory must not grow with the number of hosts that were ever called.
        """
        self._seconds = {host: seconds for host, seconds in self._seconds.items() if host in busy}
        for host, breaker in list(self._breakers.items()):
            quiet_since = max(breaker.changed_at, breaker.open_until or 0.0)
            if now - quiet_since > FORGET_AFTER_SECONDS and host not in busy:
                self._remove_breaker(host)

    def _remove_breaker(self, host: str) -> None:
        self._breakers.pop(host, None)
        self._tripped.discard(host)
