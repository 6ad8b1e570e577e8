"""The consumer's metrics. Their labels come from closed lists: never an id, a topic or another text of a command."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from shared.contract.messages import Outcome, ScheduleRequest

# The fields that an error of a command can name.
_FIELDS = (*ScheduleRequest.model_fields, "trigger_id", "note", "body", "type", "timestamp", "user_id", "other")


class Metrics:
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
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self.split_batches = Counter(
            "commands_batches_split", "Batches that failed and were tried one by one", registry=registry
        )
        self.replies_lost = Counter("replies_not_confirmed", "Replies that the broker did not take", registry=registry)

    def parked(self, error: str) -> Counter:
        """Return the counter of parked commands for the top-level field that the error names."""
        field = error.partition(":")[0].partition(".")[0]
        return self._parked.get(field, self._parked["other"])
