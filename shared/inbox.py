"""Messages from a queue, in batches: a batch closes when it is full or a few milliseconds old.

Built on aiormq's deliveries, not on aio-pika's messages: a message whose properties aio-pika cannot make sense of would
be dropped before anybody sees it, and a later `multiple` ack would acknowledge it unseen.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aio_pika.abc import AbstractChannel
from aiormq.abc import AbstractChannel as UnderlayChannel
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic

from shared.broker import CHANNEL_TIMEOUT, lost_connections_as_errors
from shared.lifecycle import Stop, first_of
from shared.properties import UNREADABLE_HEADER, UnreadableProperty
from shared.pulse import resting

# A batch closes at this size too, however few messages it has: it becomes one statement.
MAX_BATCH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Received:
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

    def __init__(self, channel: UnderlayChannel) -> None:
        self._channel = channel
        self._received: asyncio.Queue[Received] = asyncio.Queue()  # bounded by the prefetch
        self._lost = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def consuming(cls, channel: AbstractChannel, queue: str) -> AsyncIterator["Inbox"]:
        underlay = await channel.get_underlay_channel()
        inbox = cls(underlay)
        channel.close_callbacks.add(lambda *_: inbox._lost.set())
        # A queue that is deleted under us cancels the consumer and leaves the channel open: start afresh then too.
        underlay.on_consumer_cancel_callbacks.add(lambda *_: inbox._lost.set())
        with lost_connections_as_errors():
            await underlay.basic_consume(queue, inbox._take, timeout=CHANNEL_TIMEOUT)
        yield inbox

    async def _take(self, message: DeliveredMessage) -> None:
        self._received.put_nowait(_received(message))

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
                    batch.append(await self._received.get())
                    held += len(batch[-1].body)
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


def _received(message: DeliveredMessage) -> Received:
    delivery, properties = message.delivery, message.header.properties
    if not isinstance(delivery, Basic.Deliver) or delivery.delivery_tag is None:
        raise TypeError(f"not a delivery: {delivery!r}")
    headers = dict(properties.headers or {})
    unreadable = headers.get(UNREADABLE_HEADER)
    return Received(
        tag=delivery.delivery_tag,
        body=message.body,
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
