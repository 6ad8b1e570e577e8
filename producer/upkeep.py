"""Keeps the tables history and service_instances in shape: partitions for the next days, none that are too old."""

from datetime import timedelta

from producer.store.upkeep import maintain
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.postgres.pool import ACQUIRE_TIMEOUT, Pool
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, mark_turn

# The partitions of the next three days are there already, so nothing depends on a single turn.
UPKEEP_EVERY_SECONDS = 60.0


async def maintain_until_stopped(pool: Pool, keep: timedelta, stop: Stop) -> None:
    """Maintain the tables every minute. What a lock prevents is left for the next turn."""
    while not stop.requested:
        mark_turn()
        try:
            async with pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                await maintain(connection, keep)
        except RETRYABLE_ERRORS as error:
            get_log().warning("upkeep_waits", error=describe(error))
        await stop.sleep(UPKEEP_EVERY_SECONDS)
