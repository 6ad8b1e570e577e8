"""Long work in an event loop, done in pieces: between two pieces other tasks get their turn."""

import asyncio
import time
from collections.abc import Awaitable, Callable

MAX_HOLD_SECONDS = 0.005


async def next_turn() -> None:
    await asyncio.sleep(0)


class LoopYielder:
    """Call `await yielder.give_way()` after each piece of work: it lets other tasks run once this task has held the
    event loop for `max_hold` seconds.
    """

    def __init__(self, max_hold: float = MAX_HOLD_SECONDS, rest: Callable[[], Awaitable[None]] = next_turn) -> None:
        self._since = time.monotonic()
        self._max_hold = max_hold
        self._rest = rest

    @property
    def held(self) -> float:
        """Seconds since the task last gave way."""
        return time.monotonic() - self._since

    @property
    def is_due(self) -> bool:
        return self.held > self._max_hold

    async def give_way(self) -> None:
        if self.is_due:
            await self._rest()
            self._since = time.monotonic()
