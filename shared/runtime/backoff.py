"""Growing pauses: between the retries of a loop, with jitter, and after refusals of one event, without."""

import random
from dataclasses import dataclass
from datetime import timedelta

FIRST_REFUSAL_PAUSE = timedelta(seconds=1)
MAX_REFUSAL_PAUSE = timedelta(minutes=5)


@dataclass(slots=True)
class Backoff:
    """Pauses that double from `first` to `cap` seconds, minus up to half at random: replicas must not retry in step."""

    first: float = 0.2
    cap: float = 10.0
    failures: int = 0

    def next_pause(self) -> float:
        pause = min(self.cap, self.first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret

    def reset(self) -> None:
        self.failures = 0


def pause_after(refusals: int) -> timedelta:
    """Return the pause of an event that was refused so many times in a row: 1, 2, 4 … seconds, five minutes at most.
    Other events are published meanwhile.
    """
    doubled: int = 2 ** min(refusals - 1, 20)
    return min(MAX_REFUSAL_PAUSE, FIRST_REFUSAL_PAUSE * doubled)
