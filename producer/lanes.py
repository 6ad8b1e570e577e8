"""Runs the loops of the lanes. Each lane fires as long as it finds due rows. Then it sleeps until its next moment,
until a consumer says that an earlier one has come, or for the poll interval at most.
"""

import math
import time
from datetime import datetime
from typing import assert_never

from producer.firing import HEAD_START_SECONDS, Fired, Firer, Idle, NextMoment, RetryLater, TooEarly
from shared.amqp.connection import Broker
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.postgres.wake_producers import PRODUCER_POLL_SECONDS
from shared.runtime.backoff import Backoff
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, mark_turn, waiting_outside
from shared.runtime.wakeup import Wakeup

# The event loop sleeps for whole milliseconds, and may wake a little early.
SLEEP_TOLERANCE_SECONDS = 0.002
# A lane claims every half second, and after an error not much later.
MAX_ERROR_PAUSE_SECONDS = 1.0


async def poll_lane(firer: Firer, broker: Broker, wakeup: Wakeup, stop: Stop) -> None:
    """Run the lane's first Firer, the only one that polls, until the stop."""
    backoff = Backoff(cap=MAX_ERROR_PAUSE_SECONDS)
    moment: datetime | None = None
    while not stop.requested:
        mark_turn()
        wakeup.clear()  # before the claim: a wakeup that comes during it leads to another claim
        fired = await _try_to_fire(firer, broker, stop, moment)
        moment = None
        match fired:
            case Fired(next=None):
                backoff.reset()
            case Fired(next=upcoming) | Idle(next=upcoming) | TooEarly(next=upcoming):
                backoff.reset()
                moment = await _sleep(upcoming, wakeup, stop)
            case RetryLater():
                await stop.sleep(backoff.next_pause())
            case _:
                assert_never(fired)


async def _sleep(upcoming: NextMoment | None, wakeup: Wakeup, stop: Stop) -> datetime | None:
    """Sleep until shortly before the next moment, until the wakeup, or for the poll interval. Return the moment if it
    is about to come and the wakeup is not set. Return None to have the lane claim rows that are due by now.
    """
    due_at = upcoming.monotonic_at if upcoming else math.inf
    wait = min(PRODUCER_POLL_SECONDS, due_at - HEAD_START_SECONDS - time.monotonic())
    if wait > 0:
        await first_of(wakeup.wait(wait), stop.wait())
    is_near = due_at - HEAD_START_SECONDS - SLEEP_TOLERANCE_SECONDS < time.monotonic() < due_at
    return upcoming.at if upcoming and is_near and not wakeup.is_set else None


async def help_lane(firer: Firer, broker: Broker, stop: Stop) -> None:
    """Run another Firer of the lane until the stop. It sleeps until a claim of any Firer of the lane was full."""
    backoff = Backoff()
    while not stop.requested:
        with waiting_outside():
            await first_of(firer.helpers_wakeup.wait(None), stop.wait())
        firer.helpers_wakeup.clear()
        while not stop.requested:
            mark_turn()
            fired = await _try_to_fire(firer, broker, stop)
            if isinstance(fired, RetryLater):
                # This Firer's own claim may have set the wakeup: without a pause it would claim the same rows again
                # and again.
                await stop.sleep(backoff.next_pause())
                break
            backoff.reset()
            if isinstance(fired, Idle | TooEarly):
                break


async def _try_to_fire(
    firer: Firer, broker: Broker, stop: Stop, moment: datetime | None = None
) -> Fired | Idle | TooEarly | RetryLater:
    """Fire once. An error that may pass becomes RetryLater; any other is a bug and ends the process."""
    try:
        # A claim while the broker blocks publishers would hold its row locks for nothing.
        await first_of(broker.wait_until_publishable(), stop.wait())
        if stop.requested:
            return RetryLater()
        return await firer.fire_once(moment)
    except RETRYABLE_ERRORS as error:
        get_log().warning("lane_waits", error=describe(error))
    return RetryLater()
