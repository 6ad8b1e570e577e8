"""In which order the faults of a cluster strike. Pure."""

import random
from collections.abc import Iterable, Iterator

from tests.chaos.faults import ClusterFault
from tests.chaos.script import Strike


def rounds(seed: int, faults: Iterable[ClusterFault]) -> Iterator[list[Strike]]:
    """Rounds without end. In each of them every fault strikes once, in an order that only the seed decides."""
    chance, wanted = random.Random(seed), set(faults)
    while True:
        order = [fault for fault in ClusterFault if fault in wanted]
        chance.shuffle(order)
        yield [Strike(0.0, fault, fault.target) for fault in order]
