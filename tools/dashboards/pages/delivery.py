"""Delivery's page."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from tools.dashboards.panels import COUNT, PER_SECOND, SECONDS, Levels, Query, graph, number, page, quantiles
from tools.dashboards.queries import DELIVERY, LATE, last_hour, lateness, queue, rate


def delivery() -> Dashboard:
    return page(
        DELIVERY,
        "Duebell / Delivery",
        "Calls webhooks: stored first, then called with a limit and a breaker per host, tried again for as long as it "
        "makes sense.",
        {
            "": [
                number(
                    "Delivered",
                    "Webhooks answered with a 2xx, per second.",
                    rate('deliveries_total{outcome="completed"}'),
                    PER_SECOND,
                ),
                number(
                    "First call on time",
                    "99 of 100 webhooks of the last five minutes were first called within this time after they were "
                    "due.",
                    lateness("first_attempt", 0.99),
                    SECONDS,
                    levels=LATE,
                ),
                number(
                    "Waiting for a turn",
                    "Deliveries that could be called and are not: no slot, or a host's breaker is open. Counted up to "
                    "10,000.",
                    "max(deliveries_overdue)",
                    COUNT,
                    levels=Levels(warn=100, bad=1000),
                ),
                number(
                    "Longest wait",
                    "How long the oldest of them has waited.",
                    "max(deliveries_oldest_overdue_seconds)",
                    SECONDS,
                    levels=Levels(warn=10, bad=300),
                ),
                number("In flight", "Calls under way now.", "sum(deliveries_in_flight)", COUNT),
                number(
                    "Open breakers",
                    "Hosts that are left alone because they keep failing. The log names them: breaker_opened.",
                    "max(delivery_breakers_open)",
                    COUNT,
                    levels=Levels(warn=1, bad=10),
                ),
                number(
                    "Given up",
                    "Deliveries of the last hour that will not be called again. duebell deliveries replay brings them "
                    "back.",
                    last_hour('deliveries_total{outcome="failed"}'),
                    COUNT,
                    levels=Levels(warn=1, bad=100),
                ),
                number(
                    "Webhook time",
                    "95 of 100 calls take no longer.",
                    "histogram_quantile(0.95, sum by (le) (rate(delivery_call_seconds_bucket[5m])))",
                    SECONDS,
                    levels=Levels(warn=2.5, bad=10),
                ),
            ],
            "On time": [
                graph(
                    "Lateness",
                    "From due to the first call, and to the 2xx: between the two lie the receivers and the retries.",
                    SECONDS,
                    quantiles('occurrence_lateness_seconds_bucket{stage=~"first_attempt|delivered"}', by="stage"),
                    levels=LATE,
                    logarithmic=True,
                ),
                graph(
                    "Webhook time",
                    "How long receivers take to answer.",
                    SECONDS,
                    quantiles("delivery_call_seconds_bucket"),
                    logarithmic=True,
                ),
            ],
            "Outcomes": [
                graph(
                    "Attempts by result",
                    "By class of status, or by what went wrong.",
                    PER_SECOND,
                    [Query(rate("delivery_attempts_total", "result"), "{{result}}")],
                    stacked=True,
                ),
                graph(
                    "Deliveries",
                    "Stored; copies of what was known; completed; given up; calls to be repeated; delivered more than "
                    "a minute late.",
                    PER_SECOND,
                    [
                        Query(rate("deliveries_stored_total"), "stored"),
                        Query(rate("deliveries_duplicate_total"), "copies"),
                        Query(rate("deliveries_total", "outcome"), "{{outcome}}"),
                        Query(rate("delivery_retries_total"), "to be repeated"),
                        Query(rate("deliveries_late_total"), "late"),
                    ],
                ),
            ],
            "How it copes": [
                graph(
                    "Work",
                    "Deliveries that have not ended, those that wait for a turn, calls in flight, events in "
                    "scheduler.deliveries.",
                    COUNT,
                    [
                        Query("max(deliveries_open)", "open"),
                        Query("max(deliveries_overdue)", "waiting for a turn"),
                        Query("sum(deliveries_in_flight)", "in flight"),
                        Query(queue("deliveries"), "in the queue"),
                    ],
                    span=8,
                ),
                graph(
                    "Breakers and secrets",
                    "Breakers that are open now, and how often they open and close; for how many seconds the file of "
                    "signing secrets has been unreadable.",
                    COUNT,
                    [
                        Query("max(delivery_breakers_open)", "open"),
                        Query("max(webhook_secrets_stale_seconds)", "seconds without the file of secrets"),
                        Query(
                            "sum by (change) (increase(delivery_breaker_changes_total[$__rate_interval]))", "{{change}}"
                        ),
                    ],
                    span=8,
                ),
                graph(
                    "Trouble",
                    "Events parked, batches split, leases lost to another worker, calls given back at a stop, outcome "
                    "events that the broker did not take.",
                    PER_SECOND,
                    [
                        Query(rate("delivery_events_parked_total"), "parked"),
                        Query(rate("delivery_batches_split_total"), "batches split"),
                        Query(rate("delivery_leases_lost_total"), "leases lost"),
                        Query(rate("deliveries_given_back_total"), "given back"),
                        Query(rate("delivery_outcomes_not_announced_total"), "outcomes not announced"),
                    ],
                    span=8,
                ),
            ],
        },
    )
