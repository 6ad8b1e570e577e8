"""How many jobs there are to do, and how old the oldest is."""

from dataclasses import dataclass

from producer.metrics import Metrics
from producer.store import sample_jobs
from shared.database import Pool
from shared.sampling import COUNT_UP_TO

ACQUIRE_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Sampler:
    pool: Pool
    metrics: Metrics

    async def sample_once(self) -> None:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            sample = await sample_jobs(connection, COUNT_UP_TO)
        self.metrics.pending.set(sample.pending)
        self.metrics.overdue.set(sample.overdue)
        self.metrics.refused.set(sample.refused)
        self.metrics.oldest_overdue.set(sample.oldest_overdue_seconds)
        self.metrics.dead_rows.set(sample.dead_rows)
