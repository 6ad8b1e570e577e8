"""What an inbox holds is bounded in bytes: the connection's reader waits, and never for ever."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from aiormq.channel import Channel

from shared.inbox import MAX_BATCH_BYTES, MAX_HELD_BYTES, Inbox
from shared.lifecycle import Stop
from shared.received import Received

HALF = bytes(MAX_HELD_BYTES // 2)
MORE_THAN_ALL = bytes(MAX_HELD_BYTES + 1)


class Line:
    """An inbox, and what its connection does: it brings one piece after the other."""

    def __init__(self) -> None:
        self._tags = 0
        self._channel = SimpleNamespace(frames=SimpleNamespace(put=None), is_closed=False)
        self.inbox = Inbox(cast("Channel", self._channel))

    async def brings(self, *bodies: bytes) -> None:
        for body in bodies:
            self._tags += 1
            await self._channel.frames.put((0, [a_message(self._tags, body)]))

    async def next_tags(self) -> list[int]:
        return [message.tag for message in await self.inbox.next_batch(100, 0.01, Stop())]


def a_message(tag: int, body: bytes) -> Received:
    return Received(tag, body, "", "key", None, None, None, None, None, None, None, None, None, {}, None)


async def is_waiting(task: "asyncio.Task[Any]") -> bool:
    """However many turns it is given."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not task.done()


async def test_the_reader_waits_while_more_is_held_than_there_is_room_for() -> None:
    line = Line()
    bringing = asyncio.create_task(line.brings(HALF, HALF, b"{}", b"too much", b"too much"))
    assert await is_waiting(bringing)
    assert [len(message.body) for message in line.inbox._received] == [len(HALF), len(HALF), 2]
    assert await line.next_tags() == [1]
    await asyncio.wait_for(bringing, 5)
    assert await line.next_tags() == [2]
    assert await line.next_tags() == [3, 4, 5]
    assert line.inbox._held_bytes == 0


async def test_a_message_that_is_larger_than_all_room_gets_through() -> None:
    line = Line()
    bringing = asyncio.create_task(line.brings(b"{}", MORE_THAN_ALL, MORE_THAN_ALL, b"{}"))
    assert await is_waiting(bringing)
    assert await line.next_tags() == [1, 2]
    assert await is_waiting(bringing)
    assert await line.next_tags() == [3]
    await asyncio.wait_for(bringing, 5)
    assert await line.next_tags() == [4]


async def test_a_batch_that_waits_for_more_lets_the_reader_go_on() -> None:
    line = Line()
    wanted = asyncio.create_task(line.inbox.next_batch(3, 5.0, Stop()))
    await line.brings(bytes(MAX_BATCH_BYTES // 4), *[bytes(MAX_BATCH_BYTES // 4)] * 2)
    assert len(await wanted) == 3


async def test_a_channel_that_is_lost_ends_the_wait_and_what_comes_after_it_is_not_kept() -> None:
    line = Line()
    bringing = asyncio.create_task(line.brings(MORE_THAN_ALL, b"after", b"after"))
    assert await is_waiting(bringing)
    line.inbox._lost.set()
    await asyncio.wait_for(bringing, 5)
    assert len(line.inbox._received) == 1
    assert await line.next_tags() == []


async def test_a_reader_that_is_cancelled_does_not_wait() -> None:
    line = Line()
    bringing = asyncio.create_task(line.brings(MORE_THAN_ALL))
    assert await is_waiting(bringing)
    bringing.cancel()
    assert isinstance((await asyncio.gather(bringing, return_exceptions=True))[0], asyncio.CancelledError)


async def test_small_messages_never_wait() -> None:
    line = Line()
    bringing = asyncio.create_task(line.brings(*[b"{}"] * 5_000))
    await asyncio.sleep(0)
    assert bringing.done()
