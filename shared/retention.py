"""Deletes what has been finished for long enough, a few rows at a time: there is no hurry, and the work goes first."""

from collections.abc import Awaitable, Callable

from shared.database import PASSING_TROUBLE, describe
from shared.lifecycle import Stop
from shared.logs import get_log

EVERY_SECONDS = 60.0
BATCH = 1000
# Between two batches.
BREATH_SECONDS = 0.05


async def retire_until_stopped(retire_once: Callable[[int], Awaitable[int]], stop: Stop) -> None:
    """`retire_once` deletes at most so many rows in one short transaction, and says how many."""
    while not stop.requested:
        try:
            while await retire_once(BATCH) == BATCH and not stop.requested:
                await stop.sleep(BREATH_SECONDS)
        except PASSING_TROUBLE as error:
            get_log().warning("retention_waits", error=describe(error))
        await stop.sleep(EVERY_SECONDS)
