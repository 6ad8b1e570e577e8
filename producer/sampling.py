"""Samples the tables for gauges: how many jobs and delayed messages there are to do, and how old the oldest is."""

from dataclasses import dataclass

from producer.metrics import MAX_LABELLED_EXCHANGES, Metrics
from producer.store.delayed_samples import sample_delayed, sample_exchanges
from producer.store.samples import count_refused_by_key, sample_jobs
from shared.postgres.pool import ACQUIRE_TIMEOUT, Pool
from shared.runtime.periodic import MAX_COUNTED_ROWS

# How many routing keys a gauge names at a time: an alert that names more would say less.
MAX_KEYS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Sampler:
    """Sets the gauges that show how much there is to do, and how old the oldest is."""

    pool: Pool
    metrics: Metrics

    async def sample_once(self) -> None:
        """Count the rows, up to MAX_COUNTED_ROWS of each kind, and set the gauges."""
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            sample = await sample_jobs(connection, MAX_COUNTED_ROWS)
            refused = await count_refused_by_key(connection, MAX_COUNTED_ROWS, MAX_KEYS_SHOWN) if sample.refused else {}
            delayed = await sample_delayed(connection, MAX_COUNTED_ROWS)
            exchanges = await sample_exchanges(connection, MAX_COUNTED_ROWS, MAX_LABELLED_EXCHANGES)
        self.metrics.pending.set(sample.pending)
        self.metrics.overdue.set(sample.overdue)
        self.metrics.refused.set(sample.refused)
        self.metrics.show_refused_keys(refused)
        self.metrics.paused.set(sample.paused)
        self.metrics.oldest_overdue.set(sample.oldest_overdue_seconds)
        self.metrics.dead_rows.set(sample.dead_rows)
        self.metrics.delayed.all_waiting.set(delayed.waiting)
        self.metrics.delayed.overdue.set(delayed.overdue)
        self.metrics.delayed.oldest_overdue.set(delayed.oldest_overdue_seconds)
        for exchange in exchanges:
            of_exchange = self.metrics.delayed.of_exchange(exchange.name)
            of_exchange.waiting.set(exchange.waiting)
            of_exchange.refused.set(exchange.refused)
