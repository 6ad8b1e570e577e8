"""The loops: each lane fires as long as there is something due, then sleeps until its next moment, or until a consumer
says that a nearer one has come, or for the poll interval at most.
"""

import math
import time
from datetime import datetime
from typing import assert_never

from producer.firing import HEAD_START, Fired, Firer, Idle, NextMoment, Stuck, TooEarly
from shared.amqp.connection import Broker
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.postgres.wake_producers import PRODUCER_POLL_SECONDS
from shared.runtime.backoff import Backoff
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, mark_turn, waiting_outside
from shared.runtime.wakeup import Wakeup

# Sleeping ends by whole milliseconds, and may end early.
SLEEP_ENDS_EARLY_BY = 0.002
# A lane looks every half second, and after a trouble not much later.
MAX_ERROR_PAUSE_SECONDS = 1.0


async def watch_lane(firer: Firer, broker: Broker, wakeup: Wakeup, stop: Stop) -> None:
    """The lane's first worker: the only one that polls."""
    backoff = Backoff(cap=MAX_ERROR_PAUSE_SECONDS)
    moment: datetime | None = None
    while not stop.requested:
        mark_turn()
        wakeup.clear()  # before looking: what rings from here on is looked at again
        fired = await _try_to_fire(firer, broker, stop, moment)
        moment = None
        match fired:
            case Fired(next=None):
                backoff.reset()
            case Fired(next=upcoming) | Idle(next=upcoming) | TooEarly(next=upcoming):
                backoff.reset()
                moment = await _sleep(upcoming, wakeup, stop)
            case Stuck():
                await stop.sleep(backoff.next_pause())
            case _:
                assert_never(fired)


async def _sleep(upcoming: NextMoment | None, wakeup: Wakeup, stop: Stop) -> datetime | None:
    """Sleep until shortly before the next moment, or the wakeup, or for the poll interval. The moment is returned if it
    is about to come and the wakeup did not ring; None means to look at what is due by now.
    """
    due_at = upcoming.monotonic_at if upcoming else math.inf
    wait = min(PRODUCER_POLL_SECONDS, due_at - HEAD_START - time.monotonic())
    if wait > 0:
        await first_of(wakeup.wait(wait), stop.wait())
    is_near = due_at - HEAD_START - SLEEP_ENDS_EARLY_BY < time.monotonic() < due_at
    return upcoming.at if upcoming and is_near and not wakeup.is_set else None


async def help_lane(firer: Firer, broker: Broker, stop: Stop) -> None:
    """The lane's other workers: they sleep until a claim of any worker of the lane was full."""
    backoff = Backoff()
    while not stop.requested:
        with waiting_outside():
            await first_of(firer.help_wanted.wait(None), stop.wait())
        firer.help_wanted.clear()
        while not stop.requested:
            mark_turn()
            fired = await _try_to_fire(firer, broker, stop)
            if isinstance(fired, Stuck):
                # Whatever it is, this worker's own claim may have called for help: the same rows, again and again.
                await stop.sleep(backoff.next_pause())
                break
            backoff.reset()
            if isinstance(fired, Idle | TooEarly):
                break


async def _try_to_fire(
    firer: Firer, broker: Broker, stop: Stop, moment: datetime | None = None
) -> Fired | Idle | TooEarly | Stuck:
    """Trouble that passes is Stuck; everything else is a bug and takes the process down."""
    try:
        # Not while the broker blocks publishers: the row locks would be held for nothing.
        if not await _publishable(broker, stop):
            return Stuck()
        return await firer.fire_once(moment)
    except RETRYABLE_ERRORS as error:
        get_log().warning("lane_waits", error=describe(error))
    return Stuck()


async def _publishable(broker: Broker, stop: Stop) -> bool:
    await first_of(broker.wait_until_publishable(), stop.wait())
    return not stop.requested
