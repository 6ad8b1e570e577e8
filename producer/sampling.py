"""Samples the jobs table for gauges: how many jobs there are to do, and how old the oldest is."""

from dataclasses import dataclass

from producer.metrics import Metrics
from producer.store.samples import sample_jobs
from shared.postgres.pool import ACQUIRE_TIMEOUT, Pool
from shared.runtime.periodic import MAX_COUNTED_ROWS


@dataclass(frozen=True, slots=True)
class Sampler:
    """Sets the gauges that show how many jobs there are to do, and how old the oldest is."""

    pool: Pool
    metrics: Metrics

    async def sample_once(self) -> None:
        """Count the jobs, up to MAX_COUNTED_ROWS of each kind, and set the gauges."""
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            sample = await sample_jobs(connection, MAX_COUNTED_ROWS)
        self.metrics.pending.set(sample.pending)
        self.metrics.overdue.set(sample.overdue)
        self.metrics.refused.set(sample.refused)
        self.metrics.oldest_overdue.set(sample.oldest_overdue_seconds)
        self.metrics.dead_rows.set(sample.dead_rows)
