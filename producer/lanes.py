"""The loops: each lane fires as long as there is something due, then sleeps until its next moment, or until a consumer
says that a nearer one has come, or for the poll interval at most.
"""

import math
import time
from datetime import datetime
from typing import assert_never

from producer.firing import HEAD_START, Fired, Firer, Idle, NextMoment, Stuck, TooEarly
from shared.backoff import Backoff
from shared.bell import Bell
from shared.broker import Broker
from shared.database import PASSING_TROUBLE, describe
from shared.due_soon import POLL_SECONDS
from shared.lifecycle import Stop, first_of
from shared.logs import get_log
from shared.pulse import beat, resting

# Sleeping ends by whole milliseconds, and may end early.
SLEEP_ENDS_EARLY_BY = 0.002
# A lane looks every half second, and after a trouble not much later.
LONGEST_PAUSE = 1.0


async def watch_lane(firer: Firer, broker: Broker, bell: Bell, stop: Stop) -> None:
    """The lane's first worker: the only one that polls."""
    backoff = Backoff(cap=LONGEST_PAUSE)
    moment: datetime | None = None
    while not stop.requested:
        beat()
        bell.silence()  # before looking: what rings from here on is looked at again
        fired = await _try_to_fire(firer, broker, stop, moment)
        moment = None
        match fired:
            case Fired(next=None):
                backoff.reset()
            case Fired(next=upcoming) | Idle(next=upcoming) | TooEarly(next=upcoming):
                backoff.reset()
                moment = await _sleep(upcoming, bell, stop)
            case Stuck():
                await stop.sleep(backoff.next_pause())
            case _:
                assert_never(fired)


async def _sleep(upcoming: NextMoment | None, bell: Bell, stop: Stop) -> datetime | None:
    """Sleep until shortly before the next moment, or the bell, or for the poll interval. The moment is returned if it
    is about to come and the bell did not ring; None means to look at what is due by now.
    """
    due_at = upcoming.monotonic_at if upcoming else math.inf
    wait = min(POLL_SECONDS, due_at - HEAD_START - time.monotonic())
    if wait > 0:
        await first_of(bell.wait(wait), stop.wait())
    is_near = due_at - HEAD_START - SLEEP_ENDS_EARLY_BY < time.monotonic() < due_at
    return upcoming.at if upcoming and is_near and not bell.rung else None


async def help_lane(firer: Firer, broker: Broker, stop: Stop) -> None:
    """The lane's other workers: they sleep until a claim of any worker of the lane was full."""
    backoff = Backoff()
    while not stop.requested:
        with resting():
            await first_of(firer.help_wanted.wait(None), stop.wait())
        firer.help_wanted.silence()
        while not stop.requested:
            beat()
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
    except PASSING_TROUBLE as error:
        get_log().warning("lane_waits", error=describe(error))
    return Stuck()


async def _publishable(broker: Broker, stop: Stop) -> bool:
    await first_of(broker.wait_until_publishable(), stop.wait())
    return not stop.requested
