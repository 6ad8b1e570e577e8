"""What the consumer counts."""

from prometheus_client import CollectorRegistry, Counter, Histogram


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.queued = Counter("jobs_queued", "Jobs inserted", registry=registry)
        self.cancelled = Counter("jobs_cancelled", "Jobs cancelled", registry=registry)
        self.commands = Counter("commands", "Commands by outcome", ["outcome"], registry=registry)
        self.parked = Counter("commands_parked", "Commands parked, by field at fault", ["field"], registry=registry)
        self.batch_size = Histogram(
            "commands_batch_size",
            "Commands per transaction",
            buckets=(1, 5, 20, 50, 100, 200, 500, 1000),
            registry=registry,
        )
        self.split_batches = Counter(
            "commands_batches_split", "Batches that failed and were tried one by one", registry=registry
        )
