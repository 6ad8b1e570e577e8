"""The dashboards: an overview that answers the three questions of a night on call, and one page per service.

Gauges that every replica samples alike are taken by `max`; counters are summed over replicas.
"""

from grafana_foundation_sdk.models.dashboard import Dashboard

from grafana.panels import (
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

OVERVIEW, CONSUMER, PRODUCER, DELIVERY = (
    f"duebell-{name}" for name in ("overview", "consumer", "producer", "delivery")
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
                    "Messages in scheduler.parked: could not be understood, kept until somebody looks.",
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
                    "Alerts that are firing. Each has a paragraph in docs/operations.md.",
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
                    "Jobs that are due and not published; those whose event the broker refuses; deliveries that wait "
                    "for their turn. Each is counted up to 10,000.",
                    COUNT,
                    [
                        Query("max(jobs_overdue)", "jobs overdue"),
                        Query("max(jobs_refused)", "jobs refused by the broker"),
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
                    "Commands rejected, events that the broker did not confirm, messages parked, calls to be repeated, "
                    "deliveries given up.",
                    PER_SECOND,
                    [
                        Query(rate('commands_total{outcome="rejected"}'), "commands rejected"),
                        Query(rate("events_not_published_total"), "events not confirmed"),
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


def consumer() -> Dashboard:
    return page(
        CONSUMER,
        "Duebell / Consumer",
        "Stores what applications ask for.",
        {
            "": [
                number("Commands", "Handled per second, whatever became of them.", rate("commands_total"), PER_SECOND),
                number(
                    "Waiting",
                    "Messages in scheduler.inbox. Growing: start more consumers, or look at the store time.",
                    queue("inbox"),
                    COUNT,
                    levels=Levels(warn=1000, bad=10_000),
                ),
                number(
                    "Consumers",
                    "Connections that read scheduler.inbox.",
                    queue("inbox", "rabbitmq_detailed_queue_consumers"),
                    COUNT,
                ),
                number(
                    "Store time",
                    "95 of 100 batches are committed within this time.",
                    "histogram_quantile(0.95, sum by (le) (rate(commands_store_seconds_bucket[5m])))",
                    SECONDS,
                    levels=Levels(warn=0.25, bad=1),
                ),
                number(
                    "New jobs",
                    "Jobs inserted in the last hour.",
                    last_hour("jobs_queued_total"),
                    COUNT,
                ),
                number(
                    "Cancelled",
                    "Jobs cancelled in the last hour.",
                    last_hour("jobs_cancelled_total"),
                    COUNT,
                ),
                number(
                    "Parked",
                    "Commands put aside in the last hour because they could not be understood or stored.",
                    last_hour("commands_parked_total"),
                    COUNT,
                    levels=Levels(warn=1, bad=100),
                ),
                number(
                    "Replies lost",
                    "Replies of the last hour that the broker did not take.",
                    last_hour("replies_not_confirmed_total"),
                    COUNT,
                    levels=Levels(warn=1, bad=100),
                ),
            ],
            "What applications ask for": [
                graph(
                    "Commands by outcome",
                    "rejected: wrong, or too late. duplicate: known already.",
                    PER_SECOND,
                    [Query(rate("commands_total", "outcome"), "{{outcome}}")],
                    stacked=True,
                ),
                graph(
                    "Parked, by field at fault",
                    "Which field of the command was wrong. The message itself is in scheduler.parked, with reasons.",
                    PER_SECOND,
                    [Query(rate("commands_parked_total", "field"), "{{field}}")],
                ),
            ],
            "How it copes": [
                graph(
                    "Store time",
                    "From a batch of commands to its commit.",
                    SECONDS,
                    quantiles("commands_store_seconds_bucket"),
                ),
                graph(
                    "Batches",
                    "Commands per transaction: large ones mean a full queue. Split: one bad row made the batch fail, "
                    "and its members were tried one by one.",
                    COUNT,
                    [
                        Query(f"{rate('commands_batch_size_sum')} / {rate('commands_batch_size_count')}", "commands"),
                        Query("sum(increase(commands_batches_split_total[$__rate_interval]))", "batches split"),
                    ],
                ),
            ],
        },
    )


def producer() -> Dashboard:
    return page(
        PRODUCER,
        "Duebell / Producer",
        "Publishes what is due. Three lanes: fresh (due in the last 30 seconds), backlog (older), refused (the broker "
        "did not take the event; tried again after a pause).",
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
                    "Published; published more than a minute late (recovery); jobs whose late occurrences were dropped "
                    "by their own policy; jobs whose rule can no longer be read.",
                    PER_SECOND,
                    [
                        Query(rate("jobs_due_total"), "published"),
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
                    [_by_lane("claim_query_seconds_bucket")],
                    levels=Levels(warn=0.05, bad=0.1),
                    span=8,
                ),
                graph(
                    "Claim transaction",
                    "From begin to commit, the broker's confirms included (95th percentile).",
                    SECONDS,
                    [_by_lane("claim_transaction_seconds_bucket")],
                    levels=Levels(warn=0.1, bad=0.2),
                    span=8,
                ),
                graph(
                    "Broker confirms",
                    "From the first publish of a claim to its last confirm (95th percentile).",
                    SECONDS,
                    [_by_lane("publish_confirm_seconds_bucket")],
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
                    "Pending and refused jobs, row versions that await vacuum, and rows deleted by retention (per "
                    "second).",
                    COUNT,
                    [
                        Query("max(jobs_pending)", "pending"),
                        Query("max(jobs_refused)", "refused"),
                        Query("max(jobs_dead_rows)", "dead rows"),
                        Query(rate("jobs_deleted_total"), "deleted per second"),
                    ],
                    span=8,
                ),
            ],
        },
    )


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
                    "Deliveries of the last hour that will not be called again. python -m delivery.replay brings them "
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
                    "Breakers",
                    "Open now, and how often they open and close.",
                    COUNT,
                    [
                        Query("max(delivery_breakers_open)", "open"),
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


def _by_lane(histogram: str) -> Query:
    return Query(f"histogram_quantile(0.95, sum by (le, lane) (rate({histogram}[$__rate_interval])))", "{{lane}}")


PAGES = (overview, consumer, producer, delivery)
