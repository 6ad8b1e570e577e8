"""Batch after batch from one queue until the stop comes, over as many connections as it takes. Whoever handles the
batches stores first and acknowledges afterwards; this module sees to it that each step is tried until it is done, or
until the messages are no longer ours.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from shared.amqp.connection import BROKER_ERRORS, Broker
from shared.amqp.inbox import Inbox
from shared.amqp.message import IncomingMessage
from shared.amqp.parking import ParkingFailed
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.runtime.backoff import Backoff
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, mark_turn

# While one batch is being stored, the next one comes in.
BATCHES_AHEAD = 2

Item = TypeVar("Item")
Result = TypeVar("Result")


class Handler(Protocol[Result]):
    async def store(self, messages: list[IncomingMessage], /) -> Result:
        """After it returns, everything that could be understood is committed. It can be repeated."""

    async def settle(self, messages: list[IncomingMessage], stored: Result, inbox: Inbox, /) -> None:
        """After it returns, the rest is parked, and all are acknowledged. It can be repeated."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Where batches come from, and how large they may be."""

    broker: Broker
    queue: str
    batch_size: int
    batch_wait: float


async def consume_until_stopped(intake: Intake, handler: Handler[Result], stop: Stop) -> None:
    """A lost channel hands everything unacknowledged back to the queue; the next one starts afresh."""
    backoff = Backoff()
    while not stop.requested:
        mark_turn()
        try:
            await first_of(intake.broker.wait_until_up(), stop.wait())
            if not stop.requested:
                await _consume_until_lost(intake, handler, stop)
                backoff.reset()
        except BROKER_ERRORS as error:
            get_log().warning("inbox_lost", error=describe(error))
            await stop.sleep(backoff.next_pause())


async def _consume_until_lost(intake: Intake, handler: Handler[Result], stop: Stop) -> None:
    await intake.broker.redeclare()  # the queue may be what was lost
    async with (
        intake.broker.open_channel(prefetch=BATCHES_AHEAD * intake.batch_size) as channel,
        Inbox.consuming(channel, intake.queue) as inbox,
    ):
        get_log().info("consuming", queue=intake.queue)
        while not stop.requested and not inbox.is_lost:
            if batch := await inbox.next_batch(intake.batch_size, intake.batch_wait, stop):
                await _handle(batch, handler, inbox, stop)


async def _handle(batch: list[IncomingMessage], handler: Handler[Result], inbox: Inbox, stop: Stop) -> None:
    stored = await _until_done(lambda: handler.store(batch), inbox, stop)
    if stored is not None:
        await _until_done(lambda: handler.settle(batch, stored, inbox), inbox, stop)


async def _until_done(step: Callable[[], Awaitable[Result]], inbox: Inbox, stop: Stop) -> Result | None:
    """Tries again for as long as the messages are ours to acknowledge; None if they no longer are, or if the stop comes
    while the step cannot be done: they go back then.
    """
    backoff = Backoff()
    while not inbox.is_lost:
        mark_turn()
        try:
            return await step()
        except (*RETRYABLE_ERRORS, ParkingFailed) as error:
            pause = backoff.next_pause()
            get_log().warning("batch_waits", error=describe(error), retry_in_seconds=round(pause, 1))
            if stop.requested:
                return None
            await first_of(inbox.sleep(pause), stop.wait())
    return None
