"""Gives the lanes of due rows and triggers precedence: lanes with `yields_to_due_now` wait while they publish."""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# However busy the lanes with precedence are, a lane that yields goes on after this.
MAX_PRECEDENCE_WAIT_SECONDS = 0.02
# After a lane with precedence has published, the lanes that yield claim fewer rows at a time for so long.
RECENT_SECONDS = 2.0
MAX_YIELDING_CLAIM_ROWS = 250
# A lane that yields holds the event loop for no longer than this at a time.
MAX_YIELDING_HOLD_SECONDS = 0.001


class Precedence:
    """Lets lanes whose rows are due now go before lanes that yield (`Lane.yields_to_due_now`).

    All lanes of a process share an event loop, a database and a broker. A lane of overdue jobs keeps them busy with a
    thousand jobs at a time, and without precedence a row that is due now would wait for each such claim.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_now_claims = 0  # how many claims of lanes with precedence are being published
        self._last_ended_at = -math.inf
        self._none_due_now = asyncio.Event()
        self._none_due_now.set()

    @contextmanager
    def go_first(self) -> Iterator[None]:
        """Make the lanes that yield wait until the block ends."""
        self._due_now_claims += 1
        self._none_due_now.clear()
        try:
            yield
        finally:
            self._due_now_claims -= 1
            self._last_ended_at = self._clock()
            if not self._due_now_claims:
                self._none_due_now.set()

    async def wait_for_due_now(self) -> None:
        """Wait while a lane with precedence publishes, for MAX_PRECEDENCE_WAIT_SECONDS at most: a lane that yields is
        slowed down, never stopped.
        """
        await asyncio.sleep(0)  # a lane that is about to call go_first gets to do so
        if self._due_now_claims:
            try:
                async with asyncio.timeout(MAX_PRECEDENCE_WAIT_SECONDS):
                    await self._none_due_now.wait()
            except TimeoutError:
                pass

    def limit_claim(self, rows: int) -> int:
        """Return how many of `rows` a lane that yields may claim at a time."""
        is_busy = self._due_now_claims or self._clock() < self._last_ended_at + RECENT_SECONDS
        return min(rows, MAX_YIELDING_CLAIM_ROWS) if is_busy else rows
