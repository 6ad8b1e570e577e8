"""Batch after batch until the stop comes, over as many connections as it takes."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from consumer.handling import BatchHandler, ParkingFailed
from consumer.settings import ConsumerSettings
from shared.backoff import Backoff
from shared.broker import BROKER_TROUBLE, Broker
from shared.database import PASSING_TROUBLE, describe
from shared.inbox import Inbox, Received
from shared.lifecycle import Stop, first_of
from shared.logs import get_log

Result = TypeVar("Result")


async def consume_until_stopped(broker: Broker, handler: BatchHandler, settings: ConsumerSettings, stop: Stop) -> None:
    """A lost channel hands everything unacknowledged back to the queue; the next one starts afresh."""
    backoff = Backoff()
    while not stop.requested:
        try:
            await first_of(broker.wait_until_up(), stop.wait())
            if not stop.requested:
                await _consume_until_lost(broker, handler, settings, stop)
                backoff.reset()
        except BROKER_TROUBLE as error:
            get_log().warning("inbox_lost", error=describe(error))
            await stop.sleep(backoff.next_pause())


async def _consume_until_lost(broker: Broker, handler: BatchHandler, settings: ConsumerSettings, stop: Stop) -> None:
    async with (
        broker.open_channel(prefetch=2 * settings.batch_size) as channel,
        Inbox.consuming(channel, broker.names.inbox) as inbox,
    ):
        get_log().info("consuming", queue=broker.names.inbox)
        while not stop.requested and not inbox.is_lost:
            if batch := await inbox.next_batch(settings.batch_size, settings.batch_wait_seconds, stop):
                await _handle(batch, handler, inbox)


async def _handle(batch: list[Received], handler: BatchHandler, inbox: Inbox) -> None:
    answers = await _until_done(lambda: handler.store(batch), inbox)
    if answers is not None:
        await _until_done(lambda: handler.settle(batch, answers, inbox), inbox)


async def _until_done(step: Callable[[], Awaitable[Result]], inbox: Inbox) -> Result | None:
    """Tries again for as long as the messages are ours to acknowledge; None if they no longer are."""
    backoff = Backoff()
    while not inbox.is_lost:
        try:
            return await step()
        except (*PASSING_TROUBLE, ParkingFailed) as error:
            pause = backoff.next_pause()
            get_log().warning("batch_waits", error=describe(error), retry_in_seconds=round(pause, 1))
            await inbox.sleep(pause)
    return None
