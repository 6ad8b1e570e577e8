"""What a worker does next, which messages it takes and which fault each step meets, all derived from one number. So a
history is a few dozen numbers: long enough for several faults to meet, short enough to print.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.simulation.worker import Fate

MAX_FATES = 30


@dataclass(frozen=True, slots=True)
class Script:
    whats: Sequence[int]
    picks: Sequence[int]
    fates: Sequence[Fate]


def script(seed: int) -> Script:
    random = Random(seed)
    # Most steps succeed: a history in which everything fails reaches few states.
    trouble = random.choice((0.05, 0.3))
    fates = [random.choice(list(Fate)) if random.random() < trouble else Fate.OK for _ in range(MAX_FATES)]
    return Script(
        whats=[random.randint(0, 6) for _ in range(4)],
        picks=[random.randint(0, 5) for _ in range(random.randint(1, 5))],
        fates=fates[: random.randint(2, MAX_FATES)],
    )


# For the end of a history.
NO_FAULTS = Script(whats=(0,), picks=(0,) * 20, fates=(Fate.OK,) * 60)
