"""The producer's page."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from tools.dashboards.panels import COUNT, PER_SECOND, SECONDS, Levels, Query, graph, number, page, quantiles
from tools.dashboards.queries import LATE, PRODUCER, by_lane, last_hour, lateness, rate


def producer() -> Dashboard:
    return page(
        PRODUCER,
        "Duebell / Producer",
        "Publishes what is due. Four lanes: due_now (due in the last 30 seconds), overdue (older), retry (the broker "
        "did not take the event, tried again after a pause; and rules that wait for their next turn), triggers (rung "
        "by hand).",
        {
            "": [
                number("Events", "ScheduleDue confirmed per second.", rate("jobs_due_total"), PER_SECOND),
                number(
                    "On time",
                    "99 of 100 events of the last five minutes were published within this time after they were due.",
                    lateness("published", 0.99),
                    SECONDS,
                    levels=LATE,
                ),
                number(
                    "Overdue",
                    "Due and not yet published, counted up to 10,000.",
                    "max(jobs_overdue)",
                    COUNT,
                    levels=Levels(warn=1000, bad=10_000),
                ),
                number(
                    "Oldest overdue",
                    "Age of the oldest of them.",
                    "max(jobs_oldest_overdue_seconds)",
                    SECONDS,
                    levels=Levels(warn=5, bad=60),
                ),
                number(
                    "Pending",
                    "Jobs that wait for their moment: exact up to 10,000, beyond that Postgres' own estimate.",
                    "max(jobs_pending)",
                    COUNT,
                ),
                number(
                    "Claim query",
                    "95 of 100 queries for due jobs take no longer. Above 100 ms: see the runbook.",
                    "histogram_quantile(0.95, sum by (le) (rate(claim_query_seconds_bucket[5m])))",
                    SECONDS,
                    levels=Levels(warn=0.05, bad=0.1),
                ),
                number(
                    "Claim transaction",
                    "95 of 100 claims hold their row locks no longer. Above 200 ms: see the runbook.",
                    "histogram_quantile(0.95, sum by (le) (rate(claim_transaction_seconds_bucket[5m])))",
                    SECONDS,
                    levels=Levels(warn=0.1, bad=0.2),
                ),
                number(
                    "Not confirmed",
                    "Events of the last hour that the broker returned, refused or did not answer for. They are tried "
                    "again.",
                    last_hour("events_not_published_total"),
                    COUNT,
                    levels=Levels(warn=1, bad=1000),
                ),
            ],
            "On time": [
                graph(
                    "Lateness",
                    "From due to the broker's confirm.",
                    SECONDS,
                    quantiles('occurrence_lateness_seconds_bucket{stage="published"}'),
                    levels=LATE,
                    logarithmic=True,
                ),
                graph(
                    "Events",
                    "Published; those that no queue was bound for; published more than a minute late (recovery); jobs "
                    "whose late occurrences were dropped by their own policy; jobs whose rule can no longer be read.",
                    PER_SECOND,
                    [
                        Query(rate("jobs_due_total"), "published"),
                        Query(rate("events_unrouted_total"), "no queue bound"),
                        Query(rate("jobs_late_total"), "late"),
                        Query(rate("jobs_misfired_total"), "dropped by policy"),
                        Query(rate("jobs_put_off_total"), "rule unreadable"),
                    ],
                ),
            ],
            "Where time goes": [
                graph(
                    "Claim query",
                    "The query for due jobs, lane by lane (95th percentile).",
                    SECONDS,
                    [by_lane("claim_query_seconds_bucket")],
                    levels=Levels(warn=0.05, bad=0.1),
                    span=8,
                ),
                graph(
                    "Claim transaction",
                    "From begin to commit, the broker's confirms included (95th percentile).",
                    SECONDS,
                    [by_lane("claim_transaction_seconds_bucket")],
                    levels=Levels(warn=0.1, bad=0.2),
                    span=8,
                ),
                graph(
                    "Broker confirms",
                    "From the first publish of a claim to its last confirm (95th percentile).",
                    SECONDS,
                    [by_lane("publish_confirm_seconds_bucket")],
                    span=8,
                ),
            ],
            "Backlog and trouble": [
                graph(
                    "Since the last poll",
                    "Lane by lane. A line that climbs: that lane does nothing.",
                    SECONDS,
                    [Query("time() - max by (lane) (producer_last_poll_timestamp_seconds)", "{{lane}}")],
                    levels=Levels(warn=30, bad=60),
                    span=8,
                ),
                graph(
                    "Not confirmed, by verdict",
                    "returned: no queue. nacked: a queue is full. unknown: no answer in time. closed: the broker "
                    "closed the channel.",
                    PER_SECOND,
                    [Query(rate("events_not_published_total", "verdict"), "{{verdict}}")],
                    span=8,
                ),
                graph(
                    "Rows",
                    "Pending, paused and refused jobs, row versions that await vacuum, and rows deleted by retention "
                    "(per second).",
                    COUNT,
                    [
                        Query("max(jobs_pending)", "pending"),
                        Query("max(jobs_paused)", "paused"),
                        Query("max(jobs_refused)", "refused"),
                        Query("max(jobs_dead_rows)", "dead rows"),
                        Query(rate("jobs_deleted_total"), "deleted per second"),
                    ],
                    span=8,
                ),
            ],
        },
    )
