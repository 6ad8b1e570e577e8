"""Loops that run until the stop, and wait for stores that are away."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import asyncpg
import structlog

from examples.birthdays.broker import BROKER_TROUBLE

STORE_TROUBLE = (*BROKER_TROUBLE, asyncpg.PostgresError, asyncpg.InterfaceError)
MAX_PAUSE_SECONDS = 30.0

Stop = asyncio.Event


async def keep_going(name: str, work: Callable[[Stop], Awaitable[None]], stop: Stop) -> None:
    """Call it again after 0.5, 1, 2 … 30 s when a store is away. Any other error is a bug, and ends the process."""
    pause = 0.5
    while not stop.is_set():
        began = time.monotonic()
        try:
            await work(stop)
        except STORE_TROUBLE as error:
            if time.monotonic() - began > MAX_PAUSE_SECONDS:
                pause = 0.5
            problem = f"{type(error).__name__}: {error}"
            structlog.get_logger().warning("waits", part=name, problem=problem, again_in_seconds=pause)
            await sleep(stop, pause)
            pause = min(MAX_PAUSE_SECONDS, 2 * pause)


async def sleep(stop: Stop, seconds: float) -> None:
    """Sleep, or less if the stop comes."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
