"""The stop of a process, and how loops run until it comes."""

import asyncio
import math
import time
from collections.abc import Awaitable
from typing import Any

from shared.runtime.watchdog import waiting_outside


class EndedByItself(Exception):
    """A loop that should run as long as its process did not: a bug, and the process goes down with it."""


class Stop:
    """Set once, by a signal or by a test. `failure` is what a loop died of, if one did."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._failed = asyncio.Event()
        self.failure: Exception | None = None
        self.requested_at = math.inf  # by time.monotonic()

    def request(self) -> None:
        self.requested_at = min(self.requested_at, time.monotonic())
        self._event.set()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()

    def fail(self, error: Exception) -> None:
        self.failure = self.failure or error
        self._failed.set()

    async def wait_for_failure(self) -> None:
        await self._failed.wait()

    async def sleep(self, seconds: float) -> None:
        """Shorter if the stop comes. A pause between two turns is nothing to be found stuck in."""
        with waiting_outside():
            await first_of(self._event.wait(), asyncio.sleep(seconds))


async def first_of(*awaitables: Awaitable[Any]) -> None:
    """Returns when one is done, or raises what it raised; the others are cancelled and awaited."""
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(a) for a in awaitables]
    done: set[asyncio.Future[Any]] = set()
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def for_life(loop: Awaitable[None], stop: Stop, name: str) -> None:
    """Around every loop that should run until the stop. A task group takes no notice of a child that returns, or that
    is cancelled by something other than the group: this makes either a failure that nobody can miss.
    """
    try:
        await _to_the_end(loop, stop, name)
    except Exception as error:
        stop.fail(error)
        raise


async def _to_the_end(loop: Awaitable[None], stop: Stop, name: str) -> None:
    try:
        await loop
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        raise EndedByItself(f"{name} was cancelled by nobody") from None
    if not stop.requested:
        raise EndedByItself(f"{name} ended before it was told to")


async def end(task: "asyncio.Task[Any]") -> None:
    """Cancels until it is heard: a cancellation that comes at the same moment as an answer can be swallowed on the way
    (by asyncio.wait_for, in Python 3.11), and its task would go on as if nothing had been said.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.5)
