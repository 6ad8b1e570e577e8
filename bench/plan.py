"""How much of everything: what fits into ten minutes, what a full run takes, what is enough to see that it works."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    few: int = 20_000
    many: int = 200_000
    pending: int = 1_000_000
    rounds: int = 3
    webhooks: int = 10_000
    rings: int = 500  # that punctuality listens to
    rings_seconds: float = 25.0
    backlog: int = 100_000  # that it drains meanwhile
    beside_pending: tuple[int, ...] = (10_000, 1_000_000)  # how many jobs wait while the flat cost is measured
    beside_done: int = 1_000_000  # how many have rung before, for its last measurement
    peer_jobs: int = 5_000
    seconds: float = 2.0  # for what is measured by time, not by number


USUAL = Plan()
FULL = Plan(beside_pending=(10_000, 1_000_000, 5_000_000), beside_done=5_000_000)
TINY = Plan(
    few=200,
    many=400,
    pending=1000,
    rounds=1,
    webhooks=100,
    rings=20,
    rings_seconds=1.0,
    backlog=500,
    beside_pending=(100, 1000),
    beside_done=1000,
    peer_jobs=100,
    seconds=0.1,
)
