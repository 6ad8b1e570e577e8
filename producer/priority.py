"""What is due now goes first. All lanes share an event loop, a database and a broker, and a lane that works off
overdue jobs keeps them busy in turns of a thousand jobs: for what is due at this moment, each such turn is a wait.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# However busy the prompt lanes are, the others go on after this.
MAX_PRECEDENCE_WAIT_SECONDS = 0.02
# As long as the prompt lanes have been at work within this time, the others take short turns.
LATELY = 2.0
SHORT_TURN = 250
# And this is how long they hold the event loop at a time.
SHORT_HOLD = 0.001


class Precedence:
    """Prompt lanes take it; patient ones stand aside before each step while it is taken."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._takers = 0
        self._last_taken = -math.inf
        self._free = asyncio.Event()
        self._free.set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        self._takers += 1
        self._free.clear()
        try:
            yield
        finally:
            self._takers -= 1
            self._last_taken = self._clock()
            if not self._takers:
                self._free.set()

    async def stand_aside(self) -> None:
        """Bounded: a lane that always finds it taken is slowed down, never stopped."""
        await asyncio.sleep(0)  # one that is about to take it gets to do so
        if self._takers:
            try:
                async with asyncio.timeout(MAX_PRECEDENCE_WAIT_SECONDS):
                    await self._free.wait()
            except TimeoutError:
                pass

    def shortened(self, turn: int) -> int:
        """How many jobs a patient lane may claim at a time, of so many that it would."""
        in_a_hurry = self._takers or self._clock() < self._last_taken + LATELY
        return min(turn, SHORT_TURN) if in_a_hurry else turn
