"""How many deliveries there are to do, and how long the oldest has waited for its turn."""

from dataclasses import dataclass

from delivery.metrics import Metrics
from delivery.store.samples import sample_deliveries
from shared.postgres.pool import ACQUIRE_TIMEOUT, Pool
from shared.runtime.periodic import MAX_COUNTED_ROWS


@dataclass(frozen=True, slots=True)
class Sampler:
    pool: Pool
    metrics: Metrics

    async def sample_once(self) -> None:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            sample = await sample_deliveries(connection, MAX_COUNTED_ROWS)
        self.metrics.open.set(sample.open)
        self.metrics.overdue.set(sample.overdue)
        self.metrics.oldest_overdue.set(sample.oldest_overdue_seconds)
        self.metrics.dead_rows.set(sample.dead_rows)
