"""How late an occurrence is at each stage of its way, as one histogram with one name in every service: so that one
panel answers "are we on time, and if not, where is it lost".
"""

from collections.abc import Iterable
from enum import StrEnum

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from shared.tallies import Spread

# From "nobody would notice" to "a day of downtime".
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 3600.0, 21600.0, 86400.0)


class Stage(StrEnum):
    PUBLISHED = "published"  # the broker has confirmed the ScheduleDue
    FIRST_ATTEMPT = "first_attempt"  # the webhook is called for the first time
    DELIVERED = "delivered"  # the receiver has said 2xx


class LatenessByStage(Collector):
    """Registers itself; `stages[Stage.PUBLISHED].observe(seconds)`."""

    def __init__(self, registry: CollectorRegistry, *stages: Stage) -> None:
        self.stages = {stage: Spread(BOUNDS) for stage in stages}
        registry.register(self)

    def collect(self) -> Iterable[HistogramMetricFamily]:
        family = HistogramMetricFamily("occurrence_lateness_seconds", "From due_at to the stage", labels=["stage"])
        for stage, spread in self.stages.items():
            spread.add_to(family, [stage])
        yield family
