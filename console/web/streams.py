"""Keeps a part of a page live: a stream of server-sent events, each the part as it is now. A part that did not change
is not sent again. A stream ends after a while, and the browser asks for a new one: so a right that was taken away ends.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

from starlette.responses import Response, StreamingResponse

from console.errors import PageFailure
from console.web.context import Visit
from shared.postgres.errors import RETRYABLE_ERRORS
from shared.runtime.loops import first_of

# How often a list, or one schedule, is looked up for an open page.
LIST_SECONDS = 3.0
STREAM_SECONDS = 300.0
# A line that says nothing, for proxies that end silent connections.
SILENCE_SECONDS = 15.0


def live(visit: Visit, part: Callable[[Visit], Awaitable[str]], every_seconds: float) -> Response:
    """Answer with a stream of the part. Raises PageFailure if there are too many."""
    console = visit.console
    if len(console.open_streams) >= console.settings.console_max_streams:
        raise PageFailure(503, "Too many live pages", "Reload the page to see what is new.")
    return StreamingResponse(_events(visit, part, every_seconds), media_type="text/event-stream",
                             headers={"X-Accel-Buffering": "no"})  # fmt: skip


async def _events(visit: Visit, part: Callable[[Visit], Awaitable[str]], every_seconds: float) -> AsyncIterator[str]:
    console, loop = visit.console, asyncio.get_running_loop()
    mark = object()
    console.open_streams.add(mark)
    console.metrics.streams.inc()
    try:
        ends_at, sent, sent_at = loop.time() + STREAM_SECONDS, "", loop.time()
        while loop.time() < ends_at and not console.stop.requested:
            try:
                text = await part(replace(visit, now=datetime.now(UTC)))
            except PageFailure:
                return  # what the page shows is gone: its next stream is refused with the reason
            except (*RETRYABLE_ERRORS, TimeoutError):
                text = sent  # the page stays as it is until the database answers again
            if text != sent:
                yield "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"
                sent, sent_at = text, loop.time()
            elif loop.time() - sent_at > SILENCE_SECONDS:
                yield ": \n\n"
                sent_at = loop.time()
            await first_of(console.stop.wait(), asyncio.sleep(every_seconds))
    finally:
        console.open_streams.discard(mark)
        console.metrics.streams.dec()
