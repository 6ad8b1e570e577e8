"""What the producer counts."""

from prometheus_client import CollectorRegistry, Counter


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.due = Counter("jobs_due", "ScheduleDue published and confirmed", registry=registry)
        self.late = Counter("jobs_late", "ScheduleDue published more than a minute late", registry=registry)
        self.misfired = Counter(
            "jobs_misfired", "Jobs whose late occurrences were dropped by policy", registry=registry
        )
        self.not_published = Counter(
            "events_not_published", "Publishes that were not confirmed, by verdict", ["verdict"], registry=registry
        )
        self.put_off = Counter("jobs_put_off", "Jobs whose rule could not be read", registry=registry)
        self.deleted = Counter("jobs_deleted", "Terminal jobs deleted by retention", registry=registry)
