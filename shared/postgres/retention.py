"""Deletes rows that finished long ago, in small batches with pauses between them, so that other work goes first."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import Counter

from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, mark_turn

RETIRE_EVERY_SECONDS = 60.0
RETENTION_BATCH_ROWS = 1000
# The pause between two batches.
BATCH_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Retention:
    """Deletes old rows of one table. `delete` runs one short statement with a limit and returns the number of rows."""

    pool: Pool
    delete: Callable[[Connection, timedelta, int], Awaitable[int]]
    older_than: timedelta
    deleted: Counter

    async def retire_until_stopped(self, stop: Stop) -> None:
        while not stop.requested:
            try:
                while await self.retire_once() == RETENTION_BATCH_ROWS and not stop.requested:
                    await stop.sleep(BATCH_PAUSE_SECONDS)
            except RETRYABLE_ERRORS as error:
                get_log().warning("retention_waits", error=describe(error))
            await stop.sleep(RETIRE_EVERY_SECONDS)

    async def retire_once(self) -> int:
        mark_turn()
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            gone = await self.delete(connection, self.older_than, RETENTION_BATCH_ROWS)
        self.deleted.inc(gone)
        return gone
