"""The metrics of the producer. Labels come from closed lists: never an id or a topic. The exception is a gauge that has
the few routing keys whose events the broker refuses now, so that an alert can name them.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from shared.amqp.message import NOT_PUBLISHED, PublishResult
from shared.contract.delayed import exchange_label
from shared.runtime.lateness import BOUNDS, Stage, lateness_by_stage

# Alerts compare a claim's query with 100 ms and its transaction with 200 ms, so both are bounds of buckets.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 30)


@dataclass(frozen=True, slots=True)
class LaneMetrics:
    """The metrics of one lane, looked up once, because a lookup takes as long as an observation."""

    claim: Histogram
    transaction: Histogram
    confirm: Histogram
    last_poll: Gauge


# Exchanges beyond this number share one label: an operator opens them by hand, but a user might make many.
MAX_LABELLED_EXCHANGES = 100
OTHER_EXCHANGES = "(others)"


@dataclass(frozen=True, slots=True)
class ExchangeMetrics:
    """The metrics of the delayed messages to one exchange."""

    published: Counter
    waiting: Gauge
    refused: Gauge


class DelayedMetrics:
    """The metrics of delayed messages. Exchanges are labels: an operator has opened each of them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._published = Counter(
            "delayed_messages_published",
            "Delayed messages published, by target exchange",
            ["exchange"],
            registry=registry,
        )
        not_published = Counter(
            "delayed_messages_not_published",
            "Publishes of delayed messages that were not confirmed, by publish result",
            ["verdict"],
            registry=registry,
        )
        self.not_published: dict[PublishResult, Counter] = {
            result: not_published.labels(result) for result in PublishResult if result is not PublishResult.CONFIRMED
        }
        self.late = Counter(
            "delayed_messages_late", "Delayed messages published more than a minute late", registry=registry
        )
        self.lateness = Histogram(
            "delayed_message_lateness_seconds",
            "From the due moment of a delayed message to its confirm",
            buckets=BOUNDS,
            registry=registry,
        )
        # Set by the sampler. Every replica shows the same values, so take the maximum, not the sum.
        self._waiting = Gauge(
            "delayed_messages_waiting",
            "Delayed messages that wait, by target exchange, each counted up to 10,000",
            ["exchange"],
            registry=registry,
        )
        self._refused = Gauge(
            "delayed_messages_refused",
            "Delayed messages that the broker does not take, by target exchange, counted up to 10,000",
            ["exchange"],
            registry=registry,
        )
        self.all_waiting = Gauge(
            "delayed_messages_all_waiting",
            "Delayed messages that wait; exact up to 10,000, then Postgres' estimate",
            registry=registry,
        )
        self.overdue = Gauge(
            "delayed_messages_overdue",
            "Delayed messages that are due and not yet published, counted up to 10,000",
            registry=registry,
        )
        self.oldest_overdue = Gauge(
            "delayed_messages_oldest_overdue_seconds", "Age of the oldest overdue delayed message", registry=registry
        )
        self._of_exchange: dict[str, ExchangeMetrics] = {}

    def of_exchange(self, name: str) -> ExchangeMetrics:
        """Return the metrics of one target exchange."""
        if (known := self._of_exchange.get(name)) is not None:
            return known
        label = exchange_label(name) if len(self._of_exchange) < MAX_LABELLED_EXCHANGES else OTHER_EXCHANGES
        found = ExchangeMetrics(self._published.labels(label), self._waiting.labels(label), self._refused.labels(label))
        if label != OTHER_EXCHANGES:
            self._of_exchange[name] = found
        return found

    def labelled(self) -> dict[str, ExchangeMetrics]:
        """Return the metrics of all exchanges that have a label of their own."""
        return dict(self._of_exchange)


class Metrics:
    """All metrics of a producer process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.due = Counter(
            "jobs_due", "ScheduleDue published, those that no queue was bound for included", registry=registry
        )
        self.late = Counter("jobs_late", "ScheduleDue published more than a minute late", registry=registry)
        self.lateness = lateness_by_stage(registry, Stage.PUBLISHED)[Stage.PUBLISHED]
        self.misfired = Counter(
            "jobs_misfired", "Jobs whose late occurrences were dropped by policy", registry=registry
        )
        not_published = Counter(
            "events_not_published",
            "Publishes that were not confirmed, by publish result",
            ["verdict"],
            registry=registry,
        )
        self.not_published: dict[PublishResult, Counter] = {
            result: not_published.labels(result) for result in NOT_PUBLISHED
        }
        self.unrouted = Counter(
            "events_unrouted", "ScheduleDue that no queue was bound for, kept in scheduler.unrouted", registry=registry
        )
        self.unreadable = Counter("jobs_put_off", "Jobs whose rule could not be read", registry=registry)
        self.deleted = Counter("jobs_deleted", "Terminal jobs deleted by retention", registry=registry)
        self.delayed = DelayedMetrics(registry)
        self.triggers_deleted = Counter("triggers_deleted", "Fired triggers deleted by retention", registry=registry)

        # Set by the sampler. Every replica shows the same values, so take the maximum, not the sum.
        self.pending = Gauge(
            "jobs_pending", "Jobs that wait; exact up to 10,000, then Postgres' estimate", registry=registry
        )
        self.overdue = Gauge(
            "jobs_overdue", "Jobs that are due and not yet published, counted up to 10,000", registry=registry
        )
        self.refused = Gauge(
            "jobs_refused", "Jobs whose event the broker refuses, counted up to 10,000", registry=registry
        )
        self._refused_by_key = Gauge(
            "jobs_refused_by_routing_key",
            "Jobs whose event the broker refuses, for the five routing keys with the most; else no series",
            ["routing_key"],
            registry=registry,
        )
        self.paused = Gauge("jobs_paused", "Jobs that are paused, counted up to 10,000", registry=registry)
        self.oldest_overdue = Gauge(
            "jobs_oldest_overdue_seconds",
            "Age of the oldest overdue job that the broker has not refused",
            registry=registry,
        )
        self.dead_rows = Gauge("jobs_dead_rows", "Row versions in jobs that await vacuum", registry=registry)

        self._claim = Histogram(
            "claim_query_seconds", "The query that claims due jobs", ["lane"], buckets=_SECONDS, registry=registry
        )
        self._transaction = Histogram(
            "claim_transaction_seconds",
            "From begin to commit of a claim that found something: row locks are held for so long",
            ["lane"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._confirm = Histogram(
            "publish_confirm_seconds",
            "From the first publish of a claim to its last confirm",
            ["lane"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._last_poll = Gauge(
            "producer_last_poll_timestamp_seconds",
            "When the lane last asked the database for due jobs, and got an answer",
            ["lane"],
            registry=registry,
        )

    def show_refused_keys(self, jobs: Mapping[str, int]) -> None:
        """Show these routing keys with their numbers of jobs, and no others."""
        self._refused_by_key.clear()
        for key, number in jobs.items():
            self._refused_by_key.labels(key).set(number)

    def of_lane(self, name: str) -> LaneMetrics:
        """Return the metrics of one lane."""
        last_poll = self._last_poll.labels(name)
        last_poll.set(time.time())  # a lane that never polls is as late as one that stopped polling
        return LaneMetrics(
            self._claim.labels(name), self._transaction.labels(name), self._confirm.labels(name), last_poll
        )
