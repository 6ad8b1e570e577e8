"""What a benchmark finds out: a figure, what stood beside it in the same run, and what it should come to. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Beside:
    """A ceiling or a peer, measured in the same run on the same machine."""

    what: str
    value: float


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure should come to. It is of the ratio where something stood beside the figure; of the figure itself
    where nothing did, or where the goal says so, because some are promised whatever the machine.
    """

    at_least: float | None = None
    at_most: float | None = None
    of_the_figure: bool = False

    def is_met(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        bound = f"≥ {self.at_least:.2g}" if self.at_least is not None else f"≤ {self.at_most:.3g}"
        return f"{bound}, the figure" if self.of_the_figure else bound


@dataclass(frozen=True, slots=True)
class Cost:
    """The CPU time that the service's processes spent, and the stores meanwhile, with the queries of the benchmark
    itself.
    """

    cpu_ms_per_1000: float
    resident_mb: float
    postgres_ms_per_1000: float | None = None
    rabbitmq_ms_per_1000: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    value: float
    unit: str
    beside: Beside | None = None
    goal: Goal | None = None
    cost: Cost | None = None
    note: str = ""  # what a reader has to know besides
    of: str = ""  # which benchmark it is of; `run()` of the benchmark fills it in

    @property
    def ratio(self) -> float | None:
        return self.value / self.beside.value if self.beside and self.beside.value else None

    @property
    def judged(self) -> float | None:
        """The number that the goal is about."""
        return self.ratio if self.beside and not (self.goal and self.goal.of_the_figure) else self.value

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.judged is not None and self.goal.is_met(self.judged)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "goal": str(self.goal) if self.goal else None, "ratio": self.ratio, "met": self.met}


def middle(costs: Sequence[Cost]) -> Cost:
    """Return the median of each cost."""

    def of(name: str) -> float | None:
        known = [value for cost in costs if (value := getattr(cost, name)) is not None]
        return median(known) if known else None

    return Cost(
        median(cost.cpu_ms_per_1000 for cost in costs),
        median(cost.resident_mb for cost in costs),
        of("postgres_ms_per_1000"),
        of("rabbitmq_ms_per_1000"),
    )


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
