"""Says how much there is to do: every few seconds one query whose parts stop at a bound, so that looking costs the same
whatever is pending.
"""

from producer.metrics import Metrics
from producer.store import sample_jobs
from shared.database import PASSING_TROUBLE, Pool, describe
from shared.lifecycle import Stop
from shared.logs import get_log

EVERY_SECONDS = 5.0
COUNT_UP_TO = 10_000
ACQUIRE_TIMEOUT = 10.0


async def sample_until_stopped(pool: Pool, metrics: Metrics, stop: Stop) -> None:
    while not stop.requested:
        try:
            await sample_once(pool, metrics)
        except PASSING_TROUBLE as error:
            get_log().warning("sampling_waits", error=describe(error))
        await stop.sleep(EVERY_SECONDS)


async def sample_once(pool: Pool, metrics: Metrics) -> None:
    async with pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
        sample = await sample_jobs(connection, COUNT_UP_TO)
    metrics.pending.set(sample.pending)
    metrics.overdue.set(sample.overdue)
    metrics.refused.set(sample.refused)
    metrics.oldest_overdue.set(sample.oldest_overdue_seconds)
    metrics.dead_rows.set(sample.dead_rows)
