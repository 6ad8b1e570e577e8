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
    """Of the ratio where something stood beside the figure, of the figure itself where nothing did."""

    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What the service's processes spent on it."""

    cpu_ms_per_1000: float
    resident_mb: float


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    value: float
    unit: str
    beside: Beside | None = None
    goal: Goal | None = None
    cost: Cost | None = None
    of: str = ""  # which benchmark it is of; filled in by whoever runs it

    @property
    def ratio(self) -> float | None:
        return self.value / self.beside.value if self.beside and self.beside.value else None

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        judged = self.ratio if self.beside else self.value
        return judged is not None and self.goal.is_met(judged)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "goal": str(self.goal) if self.goal else None, "ratio": self.ratio, "met": self.met}


def middle(costs: Sequence[Cost]) -> Cost:
    """The median of each."""
    return Cost(median(c.cpu_ms_per_1000 for c in costs), median(c.resident_mb for c in costs))


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
