"""What a peer's handler does, and when it did it."""

import asyncio
import time
from collections.abc import Awaitable, Callable

Act = Callable[[], Awaitable[None]]
Handle = Callable[[int], Awaitable[None]]


async def nothing() -> None:
    """Note the time, and do nothing else."""


class Handling:
    """Counts handled jobs, by their numbers. Jobs that an earlier measurement left behind count as handled, and are not
    waited for.
    """

    def __init__(self, numbers: range, act: Act) -> None:
        self.heard_at: dict[int, float] = {}
        self.handled = 0
        self._numbers = numbers
        self._act = act
        self._finished = asyncio.Event()

    async def handle(self, number: int) -> None:
        await self._act()
        self.handled += 1
        if number in self._numbers:
            self.heard_at[number] = time.time()
            if len(self.heard_at) == len(self._numbers):
                self._finished.set()

    async def until_finished(self, seconds: float) -> None:
        """Wait until all are handled, or the time is up."""
        try:
            async with asyncio.timeout(seconds):
                await self._finished.wait()
        except TimeoutError:
            pass
