"""Deletes deliveries that ended long enough ago, with their attempts."""

from dataclasses import dataclass
from datetime import timedelta

from delivery.metrics import Metrics
from delivery.store_ended import delete_finished
from shared.database import Pool

ACQUIRE_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Retention:
    pool: Pool
    older_than: timedelta
    metrics: Metrics

    async def retire_once(self, limit: int) -> int:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            deleted = await delete_finished(connection, self.older_than, limit)
        self.metrics.deleted.inc(deleted)
        return deleted
