"""What the dashboards share: their names, their levels, and the queries that more than one of them asks.

Gauges that every replica samples alike are taken by `max`; counters are summed over replicas.
"""

from tools.dashboards.panels import Levels, Query

OVERVIEW, CONSUMER, PRODUCER, DELIVERY, DELAYED = (
    f"duebell-{name}" for name in ("overview", "consumer", "producer", "delivery", "delayed")
)
TO_PRODUCER, TO_CONSUMER, TO_DELIVERY = ("Producer", PRODUCER), ("Consumer", CONSUMER), ("Delivery", DELIVERY)

LATE = Levels(warn=1, bad=60)


def lateness(stage: str, quantile: float, window: str = "5m") -> str:
    selected = f'occurrence_lateness_seconds_bucket{{stage="{stage}"}}'
    return f"histogram_quantile({quantile}, sum by (le) (rate({selected}[{window}])))"


def queue(name: str, metric: str = "rabbitmq_detailed_queue_messages_ready") -> str:
    return f'max({metric}{{queue=~".*scheduler.{name}"}})'


def rate(metric: str, by: str = "") -> str:
    return f"sum{f' by ({by}) ' if by else ''}(rate({metric}[$__rate_interval]))"


def last_hour(metric: str) -> str:
    return f"sum(increase({metric}[1h]))"


def by_lane(histogram: str) -> Query:
    return Query(f"histogram_quantile(0.95, sum by (le, lane) (rate({histogram}[$__rate_interval])))", "{{lane}}")
