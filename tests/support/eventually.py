"""Waiting for something to become true, in place of sleeping and hoping."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], within: float = 20.0) -> T:
    """Looks until what it sees is true, and returns it; at the end of the time it lets the last failure through."""
    deadline = time.monotonic() + within
    while True:
        try:
            seen = await look()
            if seen:
                return seen
            failure: AssertionError = AssertionError(f"still {seen!r} after {within} s")
        except AssertionError as error:
            failure = error
        if time.monotonic() > deadline:
            raise failure
        await asyncio.sleep(0.02)
