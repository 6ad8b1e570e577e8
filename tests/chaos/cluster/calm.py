"""Waits until a system is on time again after a strike."""

import asyncio
import time
from datetime import datetime, timedelta
from itertools import takewhile

from tests.chaos.ledger import Ledger, now
from tests.chaos.observed import ObservedSystem

ON_TIME = timedelta(seconds=2)
CALM = timedelta(seconds=3)
# A job that was confirmed before this had time enough to be stored and to ring.
ASKED_LATELY = timedelta(seconds=10)
ENOUGH = 20
MAX_SECONDS = 40.0
LOOK_SECONDS = 1.0


def is_calm(ledger: Ledger, at: datetime) -> bool:
    """Tell whether events have come for a while, none of them late: later than its moment and than the confirm of its
    command, which comes late itself if the application has many to send.
    """
    lately = takewhile(lambda command: at - command.confirmed_at <= ASKED_LATELY, reversed(ledger.commands))
    confirmed = {command.job: command.confirmed_at for command in lately}
    recent = 0
    for heard in takewhile(lambda heard: at - heard.seen_at <= CALM, reversed(ledger.heard)):
        if heard.seen_at - max(heard.due_at, confirmed.get(heard.job, heard.due_at)) > ON_TIME:
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
