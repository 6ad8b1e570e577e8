"""Batches of messages from one queue: the inbox gathers them, and a loop passes them to a handler until the stop, over
as many connections as that takes. A handler stores first and acknowledges afterwards. The loop retries each step until
it succeeds, or until the channel is lost and the broker delivers the messages again.

A batch closes when it is full or a few milliseconds old. The inbox takes its messages from `shared/amqp/wire`, not from
aio-pika: aio-pika drops a message whose properties it cannot decode, and a later `multiple` ack would acknowledge that
message although the service never saw it.
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

# A batch also closes at this size, however few messages it has: one statement stores it.
MAX_BATCH_BYTES = 16 * 1024 * 1024
# The inbox buffers no more than this. The prefetch is a limit too, but it counts messages, and a thousand of them may
# be a few hundred kilobytes or a hundred gigabytes.
MAX_HELD_BYTES = 64 * 1024 * 1024
# The prefetch has room for two batches: the broker sends the next one while the handler stores the first.
BATCHES_AHEAD = 2

Item = TypeVar("Item")
Result = TypeVar("Result")


class Inbox:
    """Receives the messages of one channel. When the channel closes, the broker requeues the unacknowledged ones."""

    def __init__(self, channel: WireChannel) -> None:
        self._channel = channel
        self._received: deque[IncomingMessage] = deque()
        self._held_bytes = 0  # the size of their bodies and headers
        self._is_full = False
        self._arrived = asyncio.Event()
        self._lost = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def consuming(cls, channel: WireChannel, queue: str) -> AsyncIterator["Inbox"]:
        """Consume the queue until the block ends."""
        inbox = cls(channel)
        channel.close_callbacks.add(lambda *_: inbox.lose())
        try:
            # If the queue is deleted, the broker cancels the consumer and leaves the channel open. That is a loss, too.
            await channel.consume(queue, inbox.add, on_cancel=inbox.lose, timeout=CHANNEL_TIMEOUT)
            yield inbox
        finally:
            inbox.lose()

    def add(self, message: IncomingMessage) -> None:
        """Buffer a message. The channel calls this for every message that arrives.

        While the buffer is over its limit, the connection reads nothing. So the handler must not need an answer on this
        connection before it takes the next batch. If that takes longer than heartbeats allow, the broker closes the
        connection and requeues the messages. A message that is larger than the limit still gets through: the inbox
        buffers it before it pauses the connection.
        """
        if self._lost.is_set():  # the broker requeues it when the channel closes
            return
        self._received.append(message)
        self._held_bytes += _size_of(message)
        self._arrived.set()
        if self._held_bytes > MAX_HELD_BYTES:
            self._is_full = True
            self._channel.pause()

    def lose(self) -> None:
        """Take no more messages. The connection resumes reading, because it has to read the answer to Channel.Close."""
        self._lost.set()
        self._channel.resume()

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set() or self._channel.is_closed

    async def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until the channel is lost."""
        await first_of(self._lost.wait(), asyncio.sleep(seconds))

    async def next_batch(self, size: int, max_wait: float, stop: Stop) -> list[IncomingMessage]:
        """Wait for a batch of at least one message. Return an empty list if the channel is lost or the stop comes."""
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
                    held += _size_of(message)
                    self._release(_size_of(message))
        except TimeoutError:
            pass
        return batch

    def _release(self, size: int) -> None:
        self._held_bytes -= size
        if self._is_full and self._held_bytes <= MAX_HELD_BYTES:
            self._is_full = False
            self._channel.resume()

    async def acknowledge(self, batch: list[IncomingMessage]) -> None:
        """Acknowledge all messages up to the end of the batch with one frame. Call it in the order of batches."""
        await self._channel.acknowledge(batch[-1].tag, multiple=True)

    async def acknowledge_only(self, messages: Sequence[IncomingMessage]) -> None:
        """Acknowledge these messages alone, and no earlier ones."""
        for message in messages:
            await self._channel.acknowledge(message.tag)


def _size_of(message: IncomingMessage) -> int:
    return len(message.body) + len(message.header)


class Handler(Protocol[Result]):
    async def store(self, messages: list[IncomingMessage], /) -> Result:
        """Store the messages. After it returns, every message that could be read is committed. It may be repeated."""

    async def finish(self, messages: list[IncomingMessage], stored: Result, inbox: Inbox, /) -> None:
        """Park the messages that could not be read, then acknowledge all of them. It may be repeated."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Names the queue that a service consumes, and limits its batches."""

    broker: Broker
    queue: str
    batch_size: int
    batch_wait: float


async def consume_until_stopped(intake: Intake, handler: Handler[Result], stop: Stop) -> None:
    """Consume until the stop. After a loss the broker requeues unacknowledged messages, and a new channel starts."""
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
    await intake.broker.redeclare()  # the last channel may have been lost because its queue was deleted
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
    """Retry the step until it succeeds. Return None if the channel is lost, or if the stop comes while the step fails:
    the broker then requeues the messages.
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
