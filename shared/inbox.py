"""Messages from a queue, in batches: a batch closes when it is full or a few milliseconds old.

Built on aiormq's frames, not on aio-pika's messages: a message whose properties aio-pika cannot make sense of would be
dropped before anybody sees it, and a later `multiple` ack would acknowledge it unseen. Frames of messages are taken
where the connection hands them to the channel: aiormq would put each into a queue, and start a task for each message.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, cast

import msgspec
from aio_pika.abc import AbstractChannel
from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.frame import FrameTypes
from pamqp.header import ContentHeader

from shared.broker import CHANNEL_TIMEOUT, lost_connections_as_errors
from shared.lifecycle import Stop, first_of
from shared.properties import UNREADABLE_HEADER, UnreadableProperty
from shared.pulse import resting

# A batch closes at this size too, however few messages it has: it becomes one statement.
MAX_BATCH_BYTES = 16 * 1024 * 1024


class Received(msgspec.Struct, frozen=True):
    """A message as it came. `unreadable` names a property that is not what AMQP says it should be."""

    tag: int
    body: bytes
    exchange: str
    routing_key: str
    type: str | None
    content_type: str | None
    content_encoding: str | None
    priority: int | None
    message_id: str | None
    app_id: str | None
    correlation_id: str | None
    reply_to: str | None
    timestamp: datetime | None
    headers: dict[str, Any]
    unreadable: str | None
    user_id: str | None = None  # checked by RabbitMQ: the user of the connection that published it


class Inbox:
    """The receiving end of one channel. What it holds and has not handed out goes back when the channel closes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._received: asyncio.Queue[Received] = asyncio.Queue()  # bounded by the prefetch
        self._lost = asyncio.Event()
        # The message that is coming in, frame by frame.
        self._delivery: Basic.Deliver | None = None
        self._header = ContentHeader()
        self._body: list[bytes] = []
        self._missing = 0
        self._hand_on = channel.frames.put
        channel.frames.put = self._take  # type: ignore[method-assign, assignment]

    @classmethod
    @asynccontextmanager
    async def consuming(cls, channel: AbstractChannel, queue: str) -> AsyncIterator["Inbox"]:
        underlay = cast("Channel", await channel.get_underlay_channel())
        inbox = cls(underlay)
        channel.close_callbacks.add(lambda *_: inbox._lost.set())
        # A queue that is deleted under us cancels the consumer and leaves the channel open: start afresh then too.
        underlay.on_consumer_cancel_callbacks.add(lambda *_: inbox._lost.set())
        with lost_connections_as_errors():
            await underlay.basic_consume(queue, _never_called, timeout=CHANNEL_TIMEOUT)
        yield inbox

    async def _take(self, weight_and_frame: tuple[int, FrameTypes]) -> None:
        """A delivery is three frames or more, with nothing between them; everything else is aiormq's business."""
        _, frame = weight_and_frame
        match frame:
            case Basic.Deliver():
                self._delivery = frame
            case ContentHeader() if self._delivery:
                self._header, self._body, self._missing = frame, [], frame.body_size
                self._complete_if_all_there(self._delivery)
            case ContentBody() if self._delivery:
                self._body.append(frame.value)
                self._missing -= len(frame.value)
                self._complete_if_all_there(self._delivery)
            case _:
                await self._hand_on(weight_and_frame)

    def _complete_if_all_there(self, delivery: Basic.Deliver) -> None:
        if self._missing <= 0:
            self._delivery = None
            self._received.put_nowait(_received(delivery, self._header, b"".join(self._body)))

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set() or self._channel.is_closed

    async def sleep(self, seconds: float) -> None:
        """Shorter if the channel is lost."""
        await first_of(self._lost.wait(), asyncio.sleep(seconds))

    async def next_batch(self, size: int, max_wait: float, stop: Stop) -> list[Received]:
        """At least one message; empty if the channel was lost or the stop came first."""
        batch: list[Received] = []
        if self._received.empty():
            waiting = asyncio.ensure_future(self._received.get())
            with resting():
                await first_of(asyncio.wait({waiting}), self._lost.wait(), stop.wait())
            if not waiting.done():
                waiting.cancel()
                return []
            batch.append(waiting.result())
        if stop.requested or self.is_lost:
            return []
        held = sum(len(message.body) for message in batch)
        try:
            async with asyncio.timeout(max_wait):
                while len(batch) < size and held < MAX_BATCH_BYTES:
                    waits = self._received.empty()
                    message = await self._received.get() if waits else self._received.get_nowait()
                    batch.append(message)
                    held += len(message.body)
        except TimeoutError:
            pass
        return batch

    async def acknowledge(self, batch: list[Received]) -> None:
        """All of it with one frame. Batches are acknowledged in the order in which they were handed out."""
        with lost_connections_as_errors():
            await self._channel.basic_ack(batch[-1].tag, multiple=True)

    async def acknowledge_only(self, messages: Sequence[Received]) -> None:
        """These, and none of those that were handed out before them."""
        with lost_connections_as_errors():
            for message in messages:
                await self._channel.basic_ack(message.tag)


async def _never_called(_: DeliveredMessage) -> None:
    """What consuming asks for. The frames of messages are taken before anybody could make a message of them."""


def _received(delivery: Basic.Deliver, header: ContentHeader, body: bytes) -> Received:
    properties = header.properties
    headers = dict(properties.headers or {})
    unreadable = headers.get(UNREADABLE_HEADER)
    return Received(
        tag=delivery.delivery_tag or 0,
        body=body,
        exchange=delivery.exchange or "",
        routing_key=delivery.routing_key or "",
        type=properties.message_type,
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        priority=properties.priority,
        message_id=properties.message_id,
        app_id=properties.app_id,
        correlation_id=properties.correlation_id,
        reply_to=properties.reply_to,
        timestamp=properties.timestamp,
        headers=headers,
        unreadable=str(unreadable) if isinstance(unreadable, UnreadableProperty) else None,
        user_id=properties.user_id or None,
    )
