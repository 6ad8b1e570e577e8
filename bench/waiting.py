"""Waiting for the end of a piece of work, by looking where its results are."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from aio_pika.abc import AbstractChannel

from shared.postgres.pool import Connection

MAX_WAIT_SECONDS = 90.0
LOOK_EVERY = 0.005
MAX_PAUSE_SECONDS = 0.25
# In the words of the index that producers claim by: any other way it reads the whole table, at every look.
SOMETHING_DUE = """
select coalesce((select next_run_at <= now() from jobs where status = 'pending' and retry_at is null
                  order by next_run_at limit 1), false)
    or exists(select from jobs where status = 'pending' and retry_at is not null)
"""


class TookTooLong(Exception):
    """The work did not come to its end: what was measured is worth nothing."""


async def until(
    true: Callable[[], Awaitable[bool]], what: str, seconds: float = MAX_WAIT_SECONDS, look_every: float = LOOK_EVERY
) -> float:
    """Wait until it is true. Return the moment at which that was seen, as perf_counter() has it."""
    deadline = time.perf_counter() + seconds
    while not await true():
        if time.perf_counter() > deadline:
            raise TookTooLong(f"{what} was not reached within {seconds:.0f} s")
        await asyncio.sleep(look_every)
    return time.perf_counter()


async def depth(channel: AbstractChannel, queue: str) -> int:
    declared = await channel.declare_queue(queue, passive=True)
    return declared.declaration_result.message_count or 0


async def until_messages(channel: AbstractChannel, queue: str, messages: int) -> float:
    """Wait until so many messages were seen in the queue, and return the moment. Looking costs the broker something, so
    while the end is far it is done seldom.
    """
    began = time.perf_counter()
    while (there := await depth(channel, queue)) < messages:
        waited = time.perf_counter() - began
        if waited > MAX_WAIT_SECONDS:
            raise TookTooLong(f"{there} of {messages} messages were in {queue} after {MAX_WAIT_SECONDS:.0f} s")
        to_go = min(waited, waited * (messages - there) / max(there, 1))
        await asyncio.sleep(min(max(to_go / 2, LOOK_EVERY), MAX_PAUSE_SECONDS))
    return time.perf_counter()


async def until_fired(channel: AbstractChannel, database: Connection, queue: str, messages: int) -> float:
    """Wait until every event is confirmed and in the queue, and no row is due any more."""

    async def none_due() -> bool:
        return not await database.fetchval(SOMETHING_DUE)

    await until_messages(channel, queue, messages)
    return await until(none_due, "no row due")
