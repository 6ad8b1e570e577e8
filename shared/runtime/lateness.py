"""How late an occurrence is at each stage. All services export one histogram under one name, so that one panel shows
whether Duebell is on time and, if not, which stage loses the time.
"""

from datetime import timedelta
from enum import StrEnum

from prometheus_client import CollectorRegistry, Histogram

# From 5 ms, which no user notices, to a day of downtime.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 3600.0, 21600.0, 86400.0)

# A service logs an occurrence that is later than this.
LATE_AFTER = timedelta(seconds=60)


class Stage(StrEnum):
    PUBLISHED = "published"  # the broker has confirmed the ScheduleDue
    FIRST_ATTEMPT = "first_attempt"  # the webhook is called for the first time
    DELIVERED = "delivered"  # the receiver has answered 2xx


def lateness_by_stage(registry: CollectorRegistry, *stages: Stage) -> dict[Stage, Histogram]:
    """Return the histogram of each stage. Call this once: a lookup by label takes as long as an observation."""
    lateness = Histogram(
        "occurrence_lateness_seconds", "From due_at to the stage", ["stage"], buckets=BOUNDS, registry=registry
    )
    return {stage: lateness.labels(stage) for stage in stages}
