"""Waits for a condition instead of sleeping for a fixed time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

# Tests say how long something takes at most on a quiet machine. A busy one gets this many times as long: waiting costs
# nothing while all is well, and a test must not fail because a machine has other work to do.
SLOWEST_MACHINE = 4
# Seconds for a process to end or a connection to open.
PATIENCE = 120.0


async def eventually(look: Callable[[], Awaitable[T]], within: float = 20.0) -> T:
    """Call `look` until its result is true, and return that. When the time is over, raise its last failure."""
    deadline = time.monotonic() + within * SLOWEST_MACHINE
    while True:
        try:
            seen = await look()
            if seen:
                return seen
            failure: AssertionError = AssertionError(f"still {seen!r} after {within * SLOWEST_MACHINE:.0f} s")
        except AssertionError as error:
            failure = error
        if time.monotonic() > deadline:
            raise failure
        await asyncio.sleep(0.02)
