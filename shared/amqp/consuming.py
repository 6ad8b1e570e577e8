"""Batches of messages from one queue: the inbox that gathers them, and the loop that has them handled until the stop
comes, over as many connections as that takes. A handler stores first and acknowledges afterwards; the loop tries each
step until it is done, or until the channel is lost and the broker delivers the messages again.

A batch closes when it is full or a few milliseconds old. The inbox is built on deliveries that are taken out of the
byte stream (`shared/amqp/wire`), not on aio-pika's messages: a message whose properties aio-pika cannot make sense of
would be dropped before the service sees it, and a later `multiple` ack would acknowledge it unseen.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from shared.amqp.connection import BROKER_ERRORS, CHANNEL_TIMEOUT, Broker
from shared.amqp.message import IncomingMessage
from shared.amqp.wire import WireChannel
from shared.errors import ParkingFailed
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.runtime.backoff import Backoff
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, mark_turn, waiting_outside

# A batch closes at this size too, however few messages it has: it becomes one statement.
MAX_BATCH_BYTES = 16 * 1024 * 1024
# What waits to be handed out is bounded by the prefetch, which counts messages, and by this: a thousand messages may be
# a few hundred kilobytes or a hundred gigabytes.
MAX_HELD_BYTES = 64 * 1024 * 1024
# While one batch is being stored, the next one comes in.
BATCHES_AHEAD = 2

Item = TypeVar("Item")
Result = TypeVar("Result")


class Inbox:
    """The receiving end of one channel. What it holds and has not handed out goes back when the channel closes."""

    def __init__(self, channel: WireChannel) -> None:
        self._channel = channel
        self._received: deque[IncomingMessage] = deque()
        self._held_bytes = 0  # their bodies
        self._is_full = False
        self._arrived = asyncio.Event()
        self._lost = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def consuming(cls, channel: WireChannel, queue: str) -> AsyncIterator["Inbox"]:
        inbox = cls(channel)
        channel.close_callbacks.add(lambda *_: inbox.lose())
        try:
            # A queue that is deleted cancels the consumer and leaves the channel open: start afresh then too.
            await channel.consume(queue, inbox.add, on_cancel=inbox.lose, timeout=CHANNEL_TIMEOUT)
            yield inbox
        finally:
            inbox.lose()

    def add(self, message: IncomingMessage) -> None:
        """The channel calls this for every message that arrives.

        While more is held than there is room for, the connection reads nothing. So making room must not need an answer
        on this connection; and if it takes longer than heartbeats allow, the connection is given up, and messages go
        back. A message that is larger than all room gets through: it is taken before the connection is paused.
        """
        if self._lost.is_set():  # it goes back when the channel closes
            return
        self._received.append(message)
        self._held_bytes += len(message.body)
        self._arrived.set()
        if self._held_bytes > MAX_HELD_BYTES:
            self._is_full = True
            self._channel.pause()

    def lose(self) -> None:
        """No more messages are taken. The connection reads on: the answer to closing the channel must be read."""
        self._lost.set()
        self._channel.resume()

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set() or self._channel.is_closed

    async def sleep(self, seconds: float) -> None:
        """Shorter if the channel is lost."""
        await first_of(self._lost.wait(), asyncio.sleep(seconds))

    async def next_batch(self, size: int, max_wait: float, stop: Stop) -> list[IncomingMessage]:
        """At least one message; empty if the channel was lost or the stop came first."""
        if not self._received:
            self._arrived.clear()
            with waiting_outside():
                await first_of(self._arrived.wait(), self._lost.wait(), stop.wait())
        if stop.requested or self.is_lost:
            return []
        batch: list[IncomingMessage] = []
        held = 0
        try:
            async with asyncio.timeout(max_wait):
                while len(batch) < size and held < MAX_BATCH_BYTES:
                    if not self._received:
                        self._arrived.clear()
                        await self._arrived.wait()
                    message = self._received.popleft()
                    batch.append(message)
                    held += len(message.body)
                    self._release(len(message.body))
        except TimeoutError:
            pass
        return batch

    def _release(self, size: int) -> None:
        self._held_bytes -= size
        if self._is_full and self._held_bytes <= MAX_HELD_BYTES:
            self._is_full = False
            self._channel.resume()

    async def acknowledge(self, batch: list[IncomingMessage]) -> None:
        """All of it with one frame. Batches are acknowledged in the order in which they were handed out."""
        await self._channel.acknowledge(batch[-1].tag, multiple=True)

    async def acknowledge_only(self, messages: Sequence[IncomingMessage]) -> None:
        """These, and none of those that were handed out before them."""
        for message in messages:
            await self._channel.acknowledge(message.tag)


class Handler(Protocol[Result]):
    async def store(self, messages: list[IncomingMessage], /) -> Result:
        """After it returns, everything that could be understood is committed. It can be repeated."""

    async def finish(self, messages: list[IncomingMessage], stored: Result, inbox: Inbox, /) -> None:
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
        await _until_done(lambda: handler.finish(batch, stored, inbox), inbox, stop)


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
