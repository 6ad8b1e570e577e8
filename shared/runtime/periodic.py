"""Samples for gauges: how much work is waiting. A sample costs the same however much waits: see MAX_COUNTED_ROWS."""

from collections.abc import Awaitable, Callable

from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, mark_turn

SAMPLE_EVERY_SECONDS = 5.0
# A gauge, or the log line of a start, need not tell ten thousand rows from ten million: counts stop here.
MAX_COUNTED_ROWS = 10_000


async def sample_until_stopped(sample_once: Callable[[], Awaitable[None]], stop: Stop) -> None:
    """Call `sample_once` every few seconds. While Postgres is away, log a line and try again."""
    while not stop.requested:
        mark_turn()
        try:
            await sample_once()
        except RETRYABLE_ERRORS as error:
            get_log().warning("sampling_waits", error=describe(error))
        await stop.sleep(SAMPLE_EVERY_SECONDS)
