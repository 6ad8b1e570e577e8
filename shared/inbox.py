"""Messages from a queue, in batches: a batch closes when it is full or a few milliseconds old.

Built on aiormq's frames, not on aio-pika's messages: a message whose properties aio-pika cannot make sense of would be
dropped before anybody sees it, and a later `multiple` ack would acknowledge it unseen. Messages are taken where the
connection hands them to the channel: aiormq would put each into a queue, and start a task for each.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from aio_pika.abc import AbstractChannel
from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.frame import FrameTypes
from pamqp.header import ContentHeader

from shared.broker import CHANNEL_TIMEOUT, lost_connections_as_errors
from shared.lifecycle import Stop, first_of
from shared.message_reading import CONSUMER_TAG
from shared.pulse import resting
from shared.received import Received, put_together

# A batch closes at this size too, however few messages it has: it becomes one statement.
MAX_BATCH_BYTES = 16 * 1024 * 1024
# What waits to be handed out is bounded by the prefetch, which counts messages, and by this: a thousand messages may be
# a few hundred kilobytes or a hundred gigabytes.
MAX_HELD_BYTES = 64 * 1024 * 1024


class Inbox:
    """The receiving end of one channel. What it holds and has not handed out goes back when the channel closes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._received: deque[Received] = deque()
        self._held_bytes = 0  # their bodies
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self._lost = asyncio.Event()
        # The message that is coming in frame by frame.
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
            await underlay.basic_consume(queue, _never_called, consumer_tag=CONSUMER_TAG, timeout=CHANNEL_TIMEOUT)
        try:
            yield inbox
        finally:
            inbox._lost.set()  # nobody will make room any more, and the answer to closing must be read

    async def _take(self, weight_and_frame: tuple[int, FrameTypes | list[Received]]) -> None:
        """Messages as `shared.frame_reading` hands them on: whole, or as three frames or more, with nothing between
        them. Everything else is aiormq's business.
        """
        _, frame = weight_and_frame
        match frame:
            case list():
                self._add(*frame)
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
        if self._held_bytes > MAX_HELD_BYTES:
            await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        """The connection reads nothing until then, and TCP makes the broker wait. All else on this connection waits
        too: heartbeats, and the news that the channel was closed. So nobody may need an answer on this connection to
        make room; and if it takes longer than heartbeats allow, the connection is given up, and messages go back.

        What is too much has been taken before this waits: a message that is larger than all room gets through.
        """
        self._has_room.clear()
        await first_of(self._has_room.wait(), self._lost.wait())

    def _complete_if_all_there(self, delivery: Basic.Deliver) -> None:
        if self._missing <= 0:
            self._delivery = None
            self._add(put_together(delivery, self._header, b"".join(self._body)))

    def _add(self, *messages: Received) -> None:
        if self._lost.is_set():  # nobody asks for them any more; they go back
            return
        self._received.extend(messages)
        for message in messages:
            self._held_bytes += len(message.body)
        self._arrived.set()

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set() or self._channel.is_closed

    async def sleep(self, seconds: float) -> None:
        """Shorter if the channel is lost."""
        await first_of(self._lost.wait(), asyncio.sleep(seconds))

    async def next_batch(self, size: int, max_wait: float, stop: Stop) -> list[Received]:
        """At least one message; empty if the channel was lost or the stop came first."""
        if not self._received:
            self._arrived.clear()
            with resting():
                await first_of(self._arrived.wait(), self._lost.wait(), stop.wait())
        if stop.requested or self.is_lost:
            return []
        batch: list[Received] = []
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
        if self._held_bytes <= MAX_HELD_BYTES:
            self._has_room.set()

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
