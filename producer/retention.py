"""Deletes jobs that have been done or cancelled for long enough, a few at a time."""

from datetime import timedelta

from producer.metrics import Metrics
from producer.store import delete_finished
from shared.database import PASSING_TROUBLE, Pool, describe
from shared.lifecycle import Stop
from shared.logs import get_log

EVERY_SECONDS = 60.0
BATCH = 1000
# Between two batches: there is no hurry, and firing goes first.
BREATH_SECONDS = 0.05
ACQUIRE_TIMEOUT = 10.0


async def retire_until_stopped(pool: Pool, older_than: timedelta, metrics: Metrics, stop: Stop) -> None:
    while not stop.requested:
        try:
            while await retire_once(pool, older_than, metrics) == BATCH and not stop.requested:
                await stop.sleep(BREATH_SECONDS)
        except PASSING_TROUBLE as error:
            get_log().warning("retention_waits", error=describe(error))
        await stop.sleep(EVERY_SECONDS)


async def retire_once(pool: Pool, older_than: timedelta, metrics: Metrics) -> int:
    async with pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
        deleted = await delete_finished(connection, older_than, BATCH)
    metrics.deleted.inc(deleted)
    return deleted
