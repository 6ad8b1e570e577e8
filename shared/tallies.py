"""Metrics that are touched for every single job. The library's own take several times as long: each of them has a lock,
and a service counts in one thread. What Prometheus reads is the same.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector


class Tally(Collector):
    """A counter with one label. The usual values are shown from the start: a series that only appears with its first
    event has no rate at the moment that matters most.
    """

    def __init__(self, name: str, says: str, label: str, usual: Iterable[str], registry: CollectorRegistry) -> None:
        self._name, self._says, self._label = name, says, label
        self._counts = dict.fromkeys(usual, 0)
        registry.register(self)

    def add(self, value: str) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1

    def collect(self) -> Iterable[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._says, labels=[self._label])
        for value, count in self._counts.items():
            family.add_metric([value], count)
        yield family


class Spread:
    """How many were up to each bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        bounds = [*map(str, self._bounds), "+Inf"]
        counts = accumulate(map(float, self._counts))
        family.add_metric(labels, list(zip(bounds, counts, strict=True)), self._sum)


class Histogram(Collector):
    """One spread by itself."""

    def __init__(self, name: str, says: str, bounds: Sequence[float], registry: CollectorRegistry) -> None:
        self._name, self._says, self._spread = name, says, Spread(bounds)
        self.observe = self._spread.observe
        registry.register(self)

    def collect(self) -> Iterable[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._name, self._says, labels=[])
        self._spread.add_to(family, [])
        yield family
