"""An inbox buffers a limited number of bytes: over the limit it pauses its connection, and it always resumes it."""

import asyncio
from types import SimpleNamespace
from typing import cast

from msgspec.structs import replace

from shared.amqp.consuming import MAX_BATCH_BYTES, MAX_HELD_BYTES, Inbox
from shared.amqp.message import IncomingMessage
from shared.amqp.wire import WireChannel
from shared.runtime.loops import Stop

HALF = bytes(MAX_HELD_BYTES // 2)
MORE_THAN_ALL = bytes(MAX_HELD_BYTES + 1)


class ReceivingChannel:
    """An inbox, and a connection that delivers one message after the other while it is not paused."""

    def __init__(self, *bodies: bytes) -> None:
        self._reads = True
        self.to_come = list(enumerate(bodies, 1))
        self._channel = SimpleNamespace(is_closed=False, pause=self._pause, resume=self._resume)
        self.inbox = Inbox(cast("WireChannel", self._channel))
        self._resume()

    def _pause(self) -> None:
        self._reads = False

    def _resume(self) -> None:
        self._reads = True
        while self.to_come and self._reads:
            self.inbox.add(a_message(*self.to_come.pop(0)))

    def is_read(self) -> bool:
        return self._reads

    async def next_tags(self) -> list[int]:
        return [message.tag for message in await self.inbox.next_batch(100, 0.01, Stop())]


def a_message(tag: int, body: bytes) -> IncomingMessage:
    return IncomingMessage(tag, body, "", "key", None, None, None, None, None, None, None, None, None, {}, None)


async def test_nothing_is_read_while_the_buffer_is_over_its_limit() -> None:
    channel = ReceivingChannel(HALF, HALF, b"{}", b"too much", b"too much")
    assert not channel.is_read()
    assert [len(message.body) for message in channel.inbox._received] == [len(HALF), len(HALF), 2]
    assert await channel.next_tags() == [1]
    assert channel.is_read()
    assert await channel.next_tags() == [2]
    assert await channel.next_tags() == [3, 4, 5]
    assert channel.inbox._held_bytes == 0


async def test_headers_count_like_bodies() -> None:
    channel = ReceivingChannel()
    wanted = asyncio.create_task(channel.inbox.next_batch(100, 5.0, Stop()))
    await asyncio.sleep(0)
    for tag in range(1, 6):
        channel.inbox.add(replace(a_message(tag, b""), header=bytes(MAX_BATCH_BYTES // 4)))
    assert len(await wanted) == 4
    channel.inbox.add(replace(a_message(6, b""), header=MORE_THAN_ALL))
    assert not channel.is_read()
    assert await channel.next_tags() == [5, 6]
    assert channel.is_read()


async def test_a_message_larger_than_the_limit_gets_through() -> None:
    channel = ReceivingChannel(b"{}", MORE_THAN_ALL, MORE_THAN_ALL, b"{}")
    assert not channel.is_read()
    assert await channel.next_tags() == [1, 2]
    assert not channel.is_read()
    assert await channel.next_tags() == [3]
    assert channel.is_read()
    assert await channel.next_tags() == [4]


async def test_a_batch_that_waits_for_more_lets_the_connection_read_on() -> None:
    channel = ReceivingChannel()
    wanted = asyncio.create_task(channel.inbox.next_batch(3, 5.0, Stop()))
    await asyncio.sleep(0)
    for tag in (1, 2, 3):
        channel.inbox.add(a_message(tag, bytes(MAX_BATCH_BYTES // 4)))
    assert len(await wanted) == 3


async def test_a_channel_that_is_lost_is_read_from_and_what_comes_after_it_is_not_kept() -> None:
    channel = ReceivingChannel(MORE_THAN_ALL, b"after", b"after")
    assert not channel.is_read()
    channel.inbox.lose()
    assert channel.is_read()
    assert channel.to_come == []
    assert len(channel.inbox._received) == 1
    assert await channel.next_tags() == []


async def test_small_messages_pause_nothing() -> None:
    channel = ReceivingChannel(*[b"{}"] * 5_000)
    assert channel.is_read()
    assert channel.to_come == []
