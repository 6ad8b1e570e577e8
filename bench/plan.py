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
    flat_jobs: int = 10_000
    flat_takes: int = 2
    peer_jobs: int = 20_000  # that peers publish
    peer_jobs_among: int = 5_000  # that they handle among the pending ones
    peer_rings: int = 160
    peer_rings_seconds: float = 5.0
    peer_patience_seconds: float = 12.0  # what is not handled by then is not counted
    console_jobs: int = 1_000_000  # that wait; as many have ended, and the history has five times as many entries
    bulk_jobs: int = 100_000  # that one bulk pauses
    bulk_seconds: float = 30.0  # for so long jobs ring meanwhile
    seconds: float = 2.0  # for what is measured by time, not by number


USUAL = Plan()
FULL = Plan(beside_pending=(10_000, 1_000_000, 5_000_000), beside_done=5_000_000, console_jobs=10_000_000)
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
    flat_jobs=200,
    flat_takes=1,
    peer_jobs=100,
    peer_jobs_among=100,
    peer_rings=20,
    peer_rings_seconds=1.0,
    peer_patience_seconds=5.0,
    console_jobs=1000,
    bulk_jobs=1000,
    bulk_seconds=2.0,
    seconds=0.1,
)
