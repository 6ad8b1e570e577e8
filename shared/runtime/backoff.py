"""Growing pauses between retries, with jitter."""

import random
from dataclasses import dataclass


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
