"""What is fresh and what the table has take turns: however much there is of the one, the other gets its own."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from prometheus_client import CollectorRegistry

from delivery.announcing import MOST_IN_MEMORY, Announcer
from delivery.metrics import Metrics
from delivery.outcomes import Answered, Delivered
from delivery.recorded import recorded
from shared.lifecycle import Stop
from tests.support.builders import a_delivery

NOBODY: Any = None
ENOUGH = 5
DELIVERED = recorded(a_delivery(), Answered(200), Delivered(), datetime(2026, 1, 1, tzinfo=UTC), timedelta(0))


@dataclass(slots=True)
class CountingAnnouncer(Announcer):
    """Neither of the two comes to its end before the other has had its turn a few times."""

    fresh_turns: int = 0
    table_turns: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def announce_fresh_once(self) -> bool:
        await asyncio.sleep(0)
        self.fresh_turns += 1
        if self.table_turns >= ENOUGH:
            self._fresh.clear()
        return False

    async def announce_once(self) -> tuple[bool, bool]:
        await asyncio.sleep(0)
        self.table_turns += 1
        if self.table_turns == 1:
            self.announce([DELIVERED], self.promise())
        if self.fresh_turns >= ENOUGH:
            self.enough.set()
        return not self.enough.is_set(), False


async def test_neither_waits_for_the_end_of_the_other() -> None:
    announcer = CountingAnnouncer(NOBODY, NOBODY, NOBODY, Metrics(CollectorRegistry()), 1.0)
    announcer.announce([DELIVERED], announcer.promise())
    stop = Stop()
    running = asyncio.create_task(announcer.run(stop))
    try:
        await asyncio.wait_for(announcer.enough.wait(), 5)
    finally:
        stop.request()
        await asyncio.wait({running}, timeout=1)
        running.cancel()
    assert min(announcer.fresh_turns, announcer.table_turns) >= ENOUGH


async def test_what_is_too_much_for_the_memory_is_promised_to_nobody() -> None:
    """Its row is due at once, then, instead of when the promise is broken."""
    announcer = Announcer(NOBODY, NOBODY, NOBODY, Metrics(CollectorRegistry()), 1.0)
    assert announcer.promise().within > 0
    announcer.announce([DELIVERED] * MOST_IN_MEMORY, announcer.promise())
    assert announcer.promise().within == 0
