"""Growing pauses between retries, with jitter."""

import random
from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Pauses double from `first` to `cap` seconds. Each is shortened at random by up to half, so that replicas do not
    retry in step.
    """

    first: float = 0.2
    cap: float = 10.0
    failures: int = 0

    def next_pause(self) -> float:
        pause = min(self.cap, self.first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret

    def reset(self) -> None:
        self.failures = 0
