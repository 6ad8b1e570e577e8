"""What a worker does next, which messages it takes and what becomes of everything it does, all made from one number: a
history of a few dozen numbers is long enough for trouble to meet trouble, and still short enough to be told.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.simulation.worker import Fate

LONGEST = 30


@dataclass(frozen=True, slots=True)
class Script:
    whats: Sequence[int]
    picks: Sequence[int]
    fates: Sequence[Fate]


def script(seed: int) -> Script:
    random = Random(seed)
    # Mostly well: a history in which everything fails at once gets nowhere.
    trouble = random.choice((0.05, 0.3))
    fates = [random.choice(list(Fate)) if random.random() < trouble else Fate.OK for _ in range(LONGEST)]
    return Script(
        whats=[random.randint(0, 6) for _ in range(4)],
        picks=[random.randint(0, 5) for _ in range(random.randint(1, 5))],
        fates=fates[: random.randint(2, LONGEST)],
    )


# In the end: no more trouble.
WELL = Script(whats=(0,), picks=(0,) * 20, fates=(Fate.OK,) * 60)
