"""Limits how often passwords can be tried. Pure: the caller passes the time."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

# How many failures are allowed: for one user from one address, from one address, and for one user from anywhere. The
# last number is high, so that a stranger cannot easily lock a user out.
BURSTS = (8, 40, 200)
# One more is allowed after this time.
SECONDS_PER_TRY = 30.0
MAX_KEYS = 10_000


@dataclass(slots=True)
class AttemptLimit:
    """Counts failures as they come, and lets them fade: a bucket for each key, and a bound on the number of keys."""

    _levels: OrderedDict[tuple[str, ...], tuple[float, float]] = field(default_factory=OrderedDict)

    def seconds_to_wait(self, user: str, address: str, now: float) -> float:
        """Return 0 if a password may be tried now."""
        waits = [
            (self._level(key, now) - burst + 1) * SECONDS_PER_TRY
            for key, burst in zip(_keys(user, address), BURSTS, strict=True)
        ]
        return max(0.0, *waits)

    def count_failure(self, user: str, address: str, now: float) -> None:
        for key in _keys(user, address):
            self._levels[key] = self._level(key, now) + 1, now
            self._levels.move_to_end(key)
        while len(self._levels) > MAX_KEYS:
            self._levels.popitem(last=False)

    def forget(self, user: str, address: str, now: float) -> None:
        """Take back the attempt of a user who has logged in from this address: it was counted as a failure."""
        both, *shared = _keys(user, address)
        self._levels.pop(both, None)
        for key in shared:
            if key in self._levels:
                self._levels[key] = max(0.0, self._level(key, now) - 1), now

    def _level(self, key: tuple[str, ...], now: float) -> float:
        level, at = self._levels.get(key, (0.0, now))
        return max(0.0, level - (now - at) / SECONDS_PER_TRY)


def _keys(user: str, address: str) -> Sequence[tuple[str, ...]]:
    return ("both", user, address), ("address", address), ("user", user)
