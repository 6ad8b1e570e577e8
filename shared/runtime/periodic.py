"""Looks now and then at how much there is to do, for gauges. What it calls must cost the same whatever there is."""

from collections.abc import Awaitable, Callable

from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, mark_turn

SAMPLE_EVERY_SECONDS = 5.0
# Nobody's decision depends on whether it is ten thousand or ten million.
MAX_COUNTED_ROWS = 10_000


async def sample_until_stopped(sample_once: Callable[[], Awaitable[None]], stop: Stop) -> None:
    while not stop.requested:
        mark_turn()
        try:
            await sample_once()
        except RETRYABLE_ERRORS as error:
            get_log().warning("sampling_waits", error=describe(error))
        await stop.sleep(SAMPLE_EVERY_SECONDS)
