"""What Prometheus reads of a service that has just started: every series with a label from a closed list is there, at
zero. A series that only appears with its first event has no rate at the moment that matters most.
"""

from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from delivery.attempt.retry import CallError
from delivery.metrics import Metrics as DeliveryMetrics
from producer.metrics import Metrics as ProducerMetrics
from shared.runtime.lateness import BOUNDS, Stage, lateness_by_stage

STATUSES = ("2xx", "3xx", "4xx", "5xx")
VERDICTS = ("returned", "nacked", "unknown", "closed")
Registering = Callable[[CollectorRegistry], object]


@pytest.mark.parametrize(
    ("register", "name", "label", "values"),
    [
        (DeliveryMetrics, "deliveries_total", "outcome", ("completed", "failed")),
        (DeliveryMetrics, "delivery_attempts_total", "result", (*STATUSES, *CallError)),
        (DeliveryMetrics, "delivery_breaker_changes_total", "change", ("opened", "closed")),
        (DeliveryMetrics, "delivery_outcomes_not_announced_total", "verdict", VERDICTS),
        (DeliveryMetrics, "occurrence_lateness_seconds_count", "stage", ("first_attempt", "delivered")),
        (ProducerMetrics, "events_not_published_total", "verdict", VERDICTS),
        (ProducerMetrics, "occurrence_lateness_seconds_count", "stage", ("published",)),
    ],
    ids=lambda value: value if isinstance(value, str) and "_" in value else "",
)
def test_every_series_is_there_from_the_start(
    register: Registering, name: str, label: str, values: tuple[str, ...]
) -> None:
    registry = CollectorRegistry()
    register(registry)
    samples = [sample for family in registry.collect() for sample in family.samples if sample.name == name]
    assert [(sample.labels, sample.value) for sample in samples] == [({label: str(value)}, 0.0) for value in values]


def test_lateness_is_counted_up_to_each_bound_in_the_stage_that_it_was_seen_in() -> None:
    registry = CollectorRegistry()
    lateness = lateness_by_stage(registry, Stage.FIRST_ATTEMPT, Stage.DELIVERED)
    for seconds in (0.0, 0.005, 0.3, 7200.0, 200_000.0):
        lateness[Stage.DELIVERED].observe(seconds)

    def up_to(bound: str, stage: Stage) -> float | None:
        return registry.get_sample_value("occurrence_lateness_seconds_bucket", {"stage": stage, "le": bound})

    counts = {bound: up_to(bound, Stage.DELIVERED) for bound in ("0.005", "0.25", "0.5", "21600.0", "+Inf")}
    assert counts == {"0.005": 2, "0.25": 2, "0.5": 3, "21600.0": 4, "+Inf": 5}
    assert {up_to(str(bound), Stage.FIRST_ATTEMPT) for bound in BOUNDS} == {0}
    assert registry.get_sample_value("occurrence_lateness_seconds_sum", {"stage": Stage.DELIVERED}) == 207_200.305
