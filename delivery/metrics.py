"""The metrics of the delivery service. Labels come from closed lists: never a host, a URL or a key."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from delivery.attempt.retry import CallError
from delivery.dispatch.circuit_breaker import BreakerChange
from shared.amqp.message import NOT_PUBLISHED
from shared.runtime.lateness import Stage, lateness_by_stage


class Metrics:
    """The counters, gauges and histograms of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.stored = Counter("deliveries_stored", "ScheduleDue stored as a delivery", registry=registry)
        self.duplicates = Counter("deliveries_duplicate", "ScheduleDue that was stored before", registry=registry)
        self.parked = Counter("delivery_events_parked", "Events that could not be understood", registry=registry)
        self.split_batches = Counter(
            "delivery_batches_split", "Batches that failed and were tried one by one", registry=registry
        )
        finished = Counter("deliveries", "Deliveries that ended, by outcome", ["outcome"], registry=registry)
        self.completed, self.failed = finished.labels("completed"), finished.labels("failed")
        self.attempts = Counter(
            "delivery_attempts", "Calls that ended, by class of status or error", ["result"], registry=registry
        )
        self.retries = Counter("delivery_retries", "Attempts that are to be repeated", registry=registry)
        self.late = Counter("deliveries_late", "Delivered more than a minute late", registry=registry)
        self.leases_lost = Counter(
            "delivery_leases_lost", "Results dropped because another worker had taken over", registry=registry
        )
        self.given_back = Counter(
            "deliveries_given_back",
            "Claims given back without an attempt",
            registry=registry,
        )
        self.in_flight = Gauge("deliveries_in_flight", "Calls in flight now", registry=registry)
        self.open_breakers = Gauge("delivery_breakers_open", "Hosts whose circuit breaker is open", registry=registry)
        self.breaker_changes = Counter(
            "delivery_breaker_changes", "Breakers opened and closed", ["change"], registry=registry
        )
        self.seconds = Histogram(
            "delivery_call_seconds",
            "How long a call took",
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0),
            registry=registry,
        )
        self.lateness = lateness_by_stage(registry, Stage.FIRST_ATTEMPT, Stage.DELIVERED)
        self.announced = Counter("delivery_outcomes_announced", "Outcome events confirmed", registry=registry)
        self.not_announced = Counter(
            "delivery_outcomes_not_announced", "Publishes that were not confirmed", ["verdict"], registry=registry
        )
        self.deleted = Counter("deliveries_deleted", "Ended deliveries deleted by retention", registry=registry)

        # Sampled: see `_sample_once` in delivery.main. Every replica exports the same values: take the maximum, not the
        # sum.
        self.open = Gauge("deliveries_open", "Deliveries that have not ended, counted up to 10,000", registry=registry)
        self.overdue = Gauge(
            "deliveries_overdue", "Deliveries that wait for their turn, counted up to 10,000", registry=registry
        )
        self.oldest_overdue = Gauge(
            "deliveries_oldest_overdue_seconds", "How long the oldest has waited for its turn", registry=registry
        )
        self.dead_rows = Gauge(
            "deliveries_dead_rows", "Row versions in deliveries that await vacuum", registry=registry
        )
        self.secrets_stale = Gauge(
            "webhook_secrets_stale_seconds",
            "For how long WEBHOOK_SECRETS_FILE has been unreadable, so that older secrets are in use; 0: it is read",
            registry=registry,
        )
        self._show_zeros()

    def _show_zeros(self) -> None:
        """Export all series from the start: a series that appears with its first event shows no rate for this event."""
        for result in ("2xx", "3xx", "4xx", "5xx", *CallError):
            self.attempts.labels(result)
        for change in BreakerChange:
            self.breaker_changes.labels(change.value)
        for publish_result in NOT_PUBLISHED:
            self.not_announced.labels(publish_result)
