"""How late an occurrence is at each stage of its way, as one histogram with one name in every service: so that one
panel answers "are we on time, and if not, where is it lost".
"""

from enum import StrEnum

from prometheus_client import CollectorRegistry, Histogram

# From "nobody would notice" to "a day of downtime".
LATENESS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600, 21600, 86400)


class Stage(StrEnum):
    PUBLISHED = "published"  # the broker has confirmed the ScheduleDue
    FIRST_ATTEMPT = "first_attempt"  # the webhook is called for the first time
    DELIVERED = "delivered"  # the receiver has said 2xx


def lateness_histogram(registry: CollectorRegistry) -> Histogram:
    """Call `labels` once for each stage that the service sees, and keep what it returns."""
    return Histogram(
        "occurrence_lateness_seconds",
        "From due_at to the stage",
        ["stage"],
        buckets=LATENESS_BUCKETS,
        registry=registry,
    )
