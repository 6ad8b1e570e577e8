"""The consumer's metrics. Their labels come from closed lists: never an id, a topic or another text of a command."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from shared.contract.messages import Outcome, ScheduleRequest

_STORE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
# The parts that an error of a delayed message can name.
_PARTS_OF_MESSAGE = (
    "exchange",
    "routing_key",
    "CC",
    "body",
    "properties",
    "x-delay",
    "x-deliver-at",
    "duebell-id",
    "user_id",
    "message",
    "other",
)
# The fields that an error of a command can name.
_FIELDS = (
    *ScheduleRequest.model_fields,
    "trigger_id",
    "note",
    "action",
    "selector",
    "dry_run",
    "body",
    "type",
    "timestamp",
    "user_id",
    "other",
)


class Metrics:
    """All metrics of a consumer. Every series exists from the start, so that a rate over it is 0 and not missing."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.queued = Counter("jobs_queued", "Jobs inserted", registry=registry)
        self.cancelled = Counter("jobs_cancelled", "Jobs cancelled", registry=registry)
        commands = Counter("commands", "Commands by outcome", ["outcome"], registry=registry)
        self.commands = {outcome: commands.labels(outcome) for outcome in Outcome}
        parked = Counter("commands_parked", "Commands parked, by field at fault", ["field"], registry=registry)
        self._parked = {field: parked.labels(field) for field in _FIELDS}
        self.batch_size = Histogram(
            "commands_batch_size",
            "Commands per transaction",
            buckets=(1, 5, 20, 50, 100, 200, 500, 1000),
            registry=registry,
        )
        self.store_seconds = Histogram(
            "commands_store_seconds",
            "From a batch of commands to their commit",
            buckets=_STORE_SECONDS,
            registry=registry,
        )
        self.split_batches = Counter(
            "commands_batches_split", "Batches that failed and were tried one by one", registry=registry
        )
        self.bulk_changed = Counter("bulk_jobs_changed", "Jobs changed by a ScheduleBulk", registry=registry)
        self.bulks_finished = Counter("bulks_finished", "ScheduleBulk carried out to the end", registry=registry)
        self.bulks_deleted = Counter("bulks_deleted", "Bulks deleted long after their end", registry=registry)
        self.replies_lost = Counter("replies_not_confirmed", "Replies that the broker did not take", registry=registry)

        self.delayed_stored = Counter("delayed_messages_stored", "Delayed messages stored", registry=registry)
        self.delayed_replaced = Counter(
            "delayed_messages_replaced",
            "Delayed messages that took the place of one with their name",
            registry=registry,
        )
        self.delayed_cancelled = Counter(
            "delayed_messages_cancelled", "Delayed messages cancelled by a command", registry=registry
        )
        self.delayed_released = Counter(
            "delayed_messages_released", "Delayed messages made due at once by a trigger", registry=registry
        )
        parked_messages = Counter(
            "delayed_messages_parked", "Delayed messages parked, by part at fault", ["part"], registry=registry
        )
        self._delayed_parked = {part: parked_messages.labels(part) for part in _PARTS_OF_MESSAGE}
        self.delayed_store_seconds = Histogram(
            "delayed_messages_store_seconds",
            "From a batch of delayed messages to their commit",
            buckets=_STORE_SECONDS,
            registry=registry,
        )

    def delayed_parked(self, error: str) -> Counter:
        """Return the counter of parked messages for the part that the error names."""
        part = error.partition(":")[0].partition(".")[0]  # message.destination is of the message
        return self._delayed_parked.get(part, self._delayed_parked["other"])

    def parked(self, error: str) -> Counter:
        """Return the counter of parked commands for the top-level field that the error names."""
        field = error.partition(":")[0].partition(".")[0]
        return self._parked.get(field, self._parked["other"])
