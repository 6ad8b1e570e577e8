"""How long each host takes to answer, and how many of its rows may therefore wait in this process. Pure."""

from collections.abc import Container
from dataclasses import dataclass, field

# A waiting row should be called within this time; and no host has more rows waiting than this for each allowed call.
MAX_AHEAD_SECONDS = 0.5
MAX_AHEAD_PER_CALL = 16
# The weight of the newest call in the average time of a host's calls.
NEWEST_CALL_WEIGHT = 0.2


@dataclass(slots=True)
class HostSpeeds:
    calls_per_host: int
    _seconds: dict[str, float] = field(default_factory=dict)  # of a call, as a moving average

    def note_call(self, host: str, seconds: float) -> None:
        known = self._seconds.get(host, seconds)
        self._seconds[host] = known + NEWEST_CALL_WEIGHT * (seconds - known)

    def note_long_wait(self, host: str) -> None:
        """Rows of the host waited for too long, though its calls may not have ended yet: treat the host as slow until
        calls that end quickly bring its average down again.
        """
        self._seconds[host] = max(2 * self.calls_per_host * MAX_AHEAD_SECONDS, self._seconds.get(host, 0.0))

    def rows_ahead(self, host: str) -> int:
        """How many rows the host will have answered soon. 0 for a host that is slow or was not called yet."""
        seconds = self._seconds.get(host)
        if seconds is None:
            return 0
        ahead = int(self.calls_per_host * MAX_AHEAD_SECONDS / max(seconds, 0.001))
        return min(MAX_AHEAD_PER_CALL * self.calls_per_host, ahead)

    def forget_idle(self, busy: Container[str]) -> None:
        """Keep only hosts that have rows here: memory follows the work, not the number of hosts."""
        self._seconds = {host: seconds for host, seconds in self._seconds.items() if host in busy}
