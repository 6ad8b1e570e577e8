"""Long work in an event loop, in pieces: between two of them others get their turn."""

import asyncio
import time
from collections.abc import Awaitable, Callable

LONGEST_HOLD_SECONDS = 0.005


async def next_turn() -> None:
    await asyncio.sleep(0)


class Breath:
    """`await breath.take()` after each piece: gives way if the loop has been held for long enough."""

    def __init__(
        self, longest_hold: float = LONGEST_HOLD_SECONDS, rest: Callable[[], Awaitable[None]] = next_turn
    ) -> None:
        self._since = time.monotonic()
        self._longest_hold = longest_hold
        self._rest = rest

    @property
    def held(self) -> float:
        """For how many seconds, by now."""
        return time.monotonic() - self._since

    @property
    def is_due(self) -> bool:
        return time.monotonic() - self._since > self._longest_hold

    async def take(self) -> None:
        if self.is_due:
            await self._rest()
            self._since = time.monotonic()
