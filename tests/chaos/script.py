"""Which fault strikes when: a pure function of a seed, a length and how often each fault is wanted. The same seed gives
the same script, so a run that failed can be repeated. `at` is the earliest moment: on a slow machine a strike waits for
the one before it on its track, and the order on each track stays.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos.faults import STORES, ClusterFault, Fault, may_duplicate, targets_of, track_of

REPLICAS = 2

# Seconds that a fault lasts, where it lasts: at least, at most. Longer than a publish may take, longer than a lease.
_LASTS = {
    Fault.FREEZE: (0.5, 3.0),
    Fault.FREEZE_PAST_LEASE: (4.0, 5.0),
    Fault.CLOCK_AHEAD: (3.0, 5.0),
    Fault.CLOCK_BEHIND: (3.0, 5.0),
    Fault.BROKER_FREEZE: (1.0, 6.0),
    Fault.BROKER_ALARM: (1.0, 4.0),
    Fault.BROKER_UNBIND: (1.0, 2.0),
    Fault.BROKER_FULL: (2.0, 3.0),
    Fault.POSTGRES_FREEZE: (1.0, 4.0),
    Fault.STALL: (2.0, 6.0),
    Fault.ONE_WAY: (2.0, 6.0),
    Fault.DELAY: (2.0, 4.0),
    Fault.DRIP: (2.0, 4.0),
}

# One round of the full matrix, per target; KILL_AT_POINT once for each of its points. It takes about this long.
ROUND = dict.fromkeys(Fault, 1) | {Fault.KILL: 10, Fault.TERM: 2, Fault.FREEZE: 2}
ROUND_SECONDS = 200

# The short run that is part of `make test`: every point once, almost every other fault once at each of its targets, and
# at least seven kills of each service. `make chaos` takes ten minutes and has forty.
MIXED = dict.fromkeys(Fault, 1) | {Fault.KILL: 3, Fault.CLOCK_BEHIND: 0}
MIXED_SECONDS = 40


@dataclass(frozen=True, slots=True)
class Strike:
    at: float  # seconds from the start of the script
    fault: Fault | ClusterFault
    target: str
    replica: int = 1  # of a service
    seconds: float = 0.0
    nth: int = 1  # time that a point is reached
    pause: float = 0.0  # seconds that a process works before it is struck
    reckless: bool = False  # strikes although the other replica may not be back from its own strike

    @property
    def track(self) -> str:
        return track_of(self.target)

    @property
    def may_duplicate(self) -> bool:
        return may_duplicate(self.fault, self.target)

    @property
    def victim(self) -> str:
        """The name of the struck process; empty if the strike does not choose one of several."""
        one_of_several = self.track != STORES and self.fault is not Fault.KILL_AT_POINT
        return f"{self.target}-{self.replica}" if one_of_several else ""

    @property
    def label(self) -> str:
        """The name of the strike in the table, the same for all strikes of this fault at this target."""
        if self.fault is Fault.KILL_AT_POINT:
            return f"SIGKILL of {self.target}"
        return f"{self.target}: {self.fault}"


def full_matrix(seconds: float) -> dict[Fault, int]:
    """Every fault at each of its targets, in as many rounds as fit into `seconds`, at least one."""
    rounds = max(1, round(seconds / ROUND_SECONDS))
    return {fault: rounds * times for fault, times in ROUND.items()}


def write_script(seed: int, seconds: float, times: Mapping[Fault, int]) -> list[Strike]:
    """Every fault `times[fault]` times at each of its targets. Each track has a random order, spread over `seconds`."""
    chance = random.Random(seed)
    tracks: dict[str, list[tuple[Fault, str]]] = {}
    for fault in Fault:  # in the order of their names, not in that of the argument
        for target in targets_of(fault):
            tracks.setdefault(track_of(target), []).extend([(fault, target)] * times.get(fault, 0))
    script = []
    for faults in tracks.values():
        chance.shuffle(faults)
        slot = seconds / max(1, len(faults))
        for place, (fault, target) in enumerate(faults):
            script.append(_strike(chance, (place + chance.random()) * slot, fault, target))
    return sorted(script, key=lambda strike: strike.at)


def _strike(chance: random.Random, at: float, fault: Fault, target: str) -> Strike:
    return Strike(
        round(at, 3),
        fault,
        target,
        replica=chance.randint(1, REPLICAS),
        seconds=round(chance.uniform(*_LASTS.get(fault, (0.0, 0.0))), 2),
        nth=chance.randint(1, 3),
        pause=round(chance.uniform(0.0, 1.0), 3),
        reckless=chance.random() < 0.25,
    )
