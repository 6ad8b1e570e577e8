"""Long work in an event loop, in pieces: between two of them others get their turn."""

import asyncio
import time

LONGEST_HOLD_SECONDS = 0.005


class Breath:
    """`await breath.take()` after each piece: gives way if the loop has been held for long enough."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    @property
    def is_due(self) -> bool:
        return time.monotonic() - self._since > LONGEST_HOLD_SECONDS

    async def take(self) -> None:
        if self.is_due:
            await asyncio.sleep(0)
            self._since = time.monotonic()
