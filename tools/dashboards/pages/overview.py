"""The overview: is it on time, is it keeping up, what fails."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from tools.dashboards.panels import (
    COUNT,
    PER_SECOND,
    SECONDS,
    Levels,
    Query,
    graph,
    number,
    page,
    quantiles,
    up_or_down,
)
from tools.dashboards.queries import (
    LATE,
    OVERVIEW,
    TO_CONSUMER,
    TO_DELIVERY,
    TO_PRODUCER,
    last_hour,
    lateness,
    queue,
    rate,
)


def overview() -> Dashboard:
    return page(
        OVERVIEW,
        "Duebell / Overview",
        "Is it on time, is it keeping up, what fails? Start here.",
        {
            "": [
                number(
                    "Events on time",
                    "99 of 100 events of the last five minutes were published within this time after they were due. "
                    "Normal: tens of milliseconds.",
                    lateness("published", 0.99),
                    SECONDS,
                    levels=LATE,
                    link=TO_PRODUCER,
                ),
                number(
                    "Webhooks on time",
                    "99 of 100 webhooks were called for the first time within this time after they were due.",
                    lateness("first_attempt", 0.99),
                    SECONDS,
                    levels=LATE,
                    link=TO_DELIVERY,
                ),
                number(
                    "Oldest overdue",
                    "Age of the oldest job that is due and not yet published. Growing: producers do not keep up, or "
                    "cannot publish. Shrinking: catching up after a downtime.",
                    "max(jobs_oldest_overdue_seconds)",
                    SECONDS,
                    levels=Levels(warn=5, bad=60),
                    link=TO_PRODUCER,
                ),
                number(
                    "Since the last poll",
                    "How long ago a producer last asked for due jobs, in the lane that waits longest. Normal: half a "
                    "second, plus the age of the scrape.",
                    "max(time() - max by (lane) (producer_last_poll_timestamp_seconds))",
                    SECONDS,
                    levels=Levels(warn=30, bad=60),
                    link=TO_PRODUCER,
                ),
                number(
                    "Commands waiting",
                    "Messages in scheduler.inbox that no consumer has taken yet.",
                    queue("inbox"),
                    COUNT,
                    levels=Levels(warn=1000, bad=10_000),
                    link=TO_CONSUMER,
                ),
                number(
                    "Parked",
                    "Messages in scheduler.parked: could not be understood, kept until a person handles them.",
                    queue("parked"),
                    COUNT,
                    levels=Levels(warn=1, bad=100),
                    link=TO_CONSUMER,
                ),
                number(
                    "Failed deliveries",
                    "Webhooks that were given up in the last hour. They can be replayed.",
                    last_hour('deliveries_total{outcome="failed"}'),
                    COUNT,
                    levels=Levels(warn=1, bad=100),
                    link=TO_DELIVERY,
                ),
                number(
                    "Alerts",
                    "Alerts that are firing. Each has a paragraph in docs/operations/alerts.md.",
                    'count(ALERTS{alertname=~"Duebell.*", alertstate="firing"}) or vector(0)',
                    COUNT,
                    levels=Levels(warn=1, bad=2),
                ),
            ],
            "Is it on time?": [
                graph(
                    "Lateness by stage",
                    "From due to published, to the first call of the webhook, to its 2xx: the stage at which the lines "
                    "part is where time is lost.",
                    SECONDS,
                    quantiles("occurrence_lateness_seconds_bucket", by="stage"),
                    levels=LATE,
                    logarithmic=True,
                ),
                graph(
                    "Due and not done",
                    "Jobs that are due and not published; those whose event the broker refuses, by the routing keys "
                    "that have most of them; deliveries that wait for their turn. Each is counted up to 10,000.",
                    COUNT,
                    [
                        Query("max(jobs_overdue)", "jobs overdue"),
                        Query("max(jobs_refused)", "jobs refused by the broker"),
                        Query("max by (routing_key) (jobs_refused_by_routing_key)", "refused: {{routing_key}}"),
                        Query("max(deliveries_overdue)", "deliveries overdue"),
                    ],
                ),
            ],
            "Is it keeping up?": [
                graph(
                    "Through the system",
                    "Commands stored, events published, webhooks delivered.",
                    PER_SECOND,
                    [
                        Query(rate("commands_total"), "commands"),
                        Query(rate("jobs_due_total"), "events"),
                        Query(rate('deliveries_total{outcome="completed"}'), "deliveries"),
                    ],
                ),
                graph(
                    "Waiting in RabbitMQ",
                    "Messages ready in Duebell's own queues.",
                    COUNT,
                    [Query("max by (queue) (rabbitmq_detailed_queue_messages_ready)", "{{queue}}")],
                ),
            ],
            "What fails?": [
                graph(
                    "Failures",
                    "Commands rejected, events that the broker did not confirm, events that no queue was bound for, "
                    "messages parked, calls to be repeated, deliveries given up.",
                    PER_SECOND,
                    [
                        Query(rate('commands_total{outcome="rejected"}'), "commands rejected"),
                        Query(rate("events_not_published_total"), "events not confirmed"),
                        Query(rate("events_unrouted_total"), "events that no queue was bound for"),
                        Query(rate("commands_parked_total"), "commands parked"),
                        Query(rate("delivery_retries_total"), "calls to be repeated"),
                        Query(rate('deliveries_total{outcome="failed"}'), "deliveries given up"),
                    ],
                ),
                up_or_down(
                    "Services and what they need",
                    "Whether each service answers (up), and reaches its database and broker.",
                    Query(
                        'label_replace(min by (job) (up{job=~"consumer|producer|delivery"}), "dependency", "answers", '
                        '"", "") or min by (job, dependency) (dependency_up)',
                        "{{job}} {{dependency}}",
                    ),
                ),
            ],
        },
    )
