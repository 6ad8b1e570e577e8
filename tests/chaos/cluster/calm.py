"""Waits until a system is on time again after a strike."""

import asyncio
import time
from datetime import datetime, timedelta

from tests.chaos.ledger import Ledger, now
from tests.chaos.observed import ObservedSystem

ON_TIME = timedelta(seconds=2)
CALM = timedelta(seconds=3)
ENOUGH = 20
MAX_SECONDS = 60.0
LOOK_SECONDS = 0.5


def is_calm(ledger: Ledger, at: datetime) -> bool:
    """Tell whether events have come for a while, none of them late."""
    recent = 0
    for heard in reversed(ledger.heard):
        if at - heard.seen_at > CALM:
            break
        if heard.seen_at - heard.due_at > ON_TIME:
            return False
        recent += 1
    return recent >= ENOUGH


async def wait_until_calm(system: ObservedSystem) -> bool:
    """Wait until the system is calm, but no longer than MAX_SECONDS. Returns whether it is."""
    deadline = time.monotonic() + MAX_SECONDS
    while not is_calm(system.ledger, now()):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True
