"""Waiting for the end of a piece of work, by looking where its results are."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from aio_pika.abc import AbstractChannel

from shared.database import Connection

LONGEST_WAIT = 90.0
LOOK_EVERY = 0.01
# In the words of the index that producers claim by: any other way it reads the whole table, at every look.
SOMETHING_DUE = """
select coalesce((select next_run_at <= now() from jobs where status = 'pending' and retry_at is null
                  order by next_run_at limit 1), false)
    or exists(select from jobs where status = 'pending' and retry_at is not null)
"""


class TookTooLong(Exception):
    """The work did not come to its end: what was measured is worth nothing."""


async def until(
    true: Callable[[], Awaitable[bool]], what: str, seconds: float = LONGEST_WAIT, look_every: float = LOOK_EVERY
) -> float:
    """The moment at which it was seen to be true, as perf_counter() has it."""
    deadline = time.perf_counter() + seconds
    while not await true():
        if time.perf_counter() > deadline:
            raise TookTooLong(f"{what} was not reached within {seconds:.0f} s")
        await asyncio.sleep(look_every)
    return time.perf_counter()


async def depth(channel: AbstractChannel, queue: str) -> int:
    declared = await channel.declare_queue(queue, passive=True)
    return declared.declaration_result.message_count or 0


async def until_fired(channel: AbstractChannel, database: Connection, queue: str, messages: int) -> float:
    """Every event is confirmed and in the queue, and no row is due any more."""

    async def all_there() -> bool:
        return await depth(channel, queue) >= messages

    async def none_due() -> bool:
        return not await database.fetchval(SOMETHING_DUE)

    await until(all_there, f"{messages} events in {queue}")
    return await until(none_due, "no row due")
