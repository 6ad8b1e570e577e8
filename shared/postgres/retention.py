"""Deletes what has been finished for long enough, a few rows at a time: there is no hurry, and the work goes first."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import Counter

from shared.postgres.errors import PASSING_TROUBLE, describe
from shared.postgres.pool import Connection, Pool
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, mark_turn

EVERY_SECONDS = 60.0
BATCH = 1000
# Between two batches.
BREATH_SECONDS = 0.05
ACQUIRE_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Retention:
    """`delete` removes at most so many rows in one short transaction, and says how many."""

    pool: Pool
    delete: Callable[[Connection, timedelta, int], Awaitable[int]]
    older_than: timedelta
    deleted: Counter

    async def retire_until_stopped(self, stop: Stop) -> None:
        while not stop.requested:
            try:
                while await self.retire_once() == BATCH and not stop.requested:
                    await stop.sleep(BREATH_SECONDS)
            except PASSING_TROUBLE as error:
                get_log().warning("retention_waits", error=describe(error))
            await stop.sleep(EVERY_SECONDS)

    async def retire_once(self) -> int:
        mark_turn()
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            gone = await self.delete(connection, self.older_than, BATCH)
        self.deleted.inc(gone)
        return gone
