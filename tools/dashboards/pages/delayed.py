"""The page of delayed messages."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from tools.dashboards.panels import COUNT, PER_SECOND, SECONDS, Levels, Query, graph, number, page, quantiles
from tools.dashboards.queries import DELAYED, LATE, TO_CONSUMER, TO_PRODUCER, last_hour, queue, rate


def delayed() -> Dashboard:
    return page(
        DELAYED,
        "Duebell / Delayed messages",
        "Messages that were published to delay exchanges: held, published when they are due, and what the broker does "
        "not take.",
        {
            "": [
                number(
                    "Stored", "Delayed messages stored per second.", rate("delayed_messages_stored_total"), PER_SECOND
                ),
                number(
                    "Published",
                    "Delayed messages confirmed by their target exchange, per second.",
                    rate("delayed_messages_published_total"),
                    PER_SECOND,
                ),
                number(
                    "On time",
                    "99 of 100 of the last five minutes were published within this time after they were due.",
                    "histogram_quantile(0.99, sum by (le) (rate(delayed_message_lateness_seconds_bucket[5m])))",
                    SECONDS,
                    levels=LATE,
                    link=TO_PRODUCER,
                ),
                number(
                    "Oldest overdue",
                    "Age of the oldest message that is due and that no producer has tried yet.",
                    "max(delayed_messages_oldest_overdue_seconds)",
                    SECONDS,
                    levels=Levels(warn=5, bad=60),
                    link=TO_PRODUCER,
                ),
                number(
                    "Waiting",
                    "Messages that wait: exact up to 10,000, beyond that Postgres' own estimate.",
                    "max(delayed_messages_all_waiting)",
                    COUNT,
                ),
                number(
                    "Not taken",
                    "Messages that the broker does not take: their exchange is gone, nothing is bound, or a queue is "
                    "full. They are tried again.",
                    "sum(max by (exchange) (delayed_messages_refused))",
                    COUNT,
                    levels=Levels(warn=1, bad=1000),
                ),
                number(
                    "Not held yet",
                    "Messages in scheduler.delayed that no consumer has stored yet.",
                    queue("delayed"),
                    COUNT,
                    levels=Levels(warn=1000, bad=10_000),
                    link=TO_CONSUMER,
                ),
                number(
                    "Parked, last hour",
                    "Messages that could not be held: too large, or not by a delay exchange.",
                    last_hour("delayed_messages_parked_total"),
                    COUNT,
                    levels=Levels(warn=1, bad=100),
                ),
            ],
            "By exchange": [
                graph(
                    "Waiting",
                    "Each counted up to 10,000. Exchanges beyond a hundred are shown together.",
                    COUNT,
                    [Query("max by (exchange) (delayed_messages_waiting)", "{{exchange}}")],
                    span=8,
                ),
                graph(
                    "Published",
                    "Confirmed by the broker.",
                    PER_SECOND,
                    [Query(rate("delayed_messages_published_total", "exchange"), "{{exchange}}")],
                    span=8,
                ),
                graph(
                    "Not taken",
                    "Messages that are tried again after a growing pause.",
                    COUNT,
                    [Query("max by (exchange) (delayed_messages_refused)", "{{exchange}}")],
                    span=8,
                ),
            ],
            "On their way": [
                graph(
                    "Lateness",
                    "From the due moment to the confirm.",
                    SECONDS,
                    quantiles("delayed_message_lateness_seconds_bucket"),
                    levels=LATE,
                    logarithmic=True,
                    span=8,
                ),
                graph(
                    "What applications ask for",
                    "Stored, replaced under their name, cancelled, and released before their moment.",
                    PER_SECOND,
                    [
                        Query(rate(f"delayed_messages_{what}_total"), what)
                        for what in ("stored", "replaced", "cancelled", "released")
                    ],
                    span=8,
                ),
                graph(
                    "Not confirmed, by verdict",
                    "returned or unrouted: no queue is bound. nacked: a queue is full. no_target: the exchange is not "
                    "there. too_large: its headers do not fit into a frame. unknown: no answer in time. closed: the "
                    "broker closed the channel.",
                    PER_SECOND,
                    [Query(rate("delayed_messages_not_published_total", "verdict"), "{{verdict}}")],
                    span=8,
                ),
            ],
        },
    )
