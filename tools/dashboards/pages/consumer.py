"""The consumer's page."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from tools.dashboards.panels import COUNT, PER_SECOND, SECONDS, Levels, Query, graph, number, page, quantiles
from tools.dashboards.queries import CONSUMER, last_hour, queue, rate


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
