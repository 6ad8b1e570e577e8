"""Our own reader of frames reads what aiormq's would, however the bytes are cut on their way."""

import asyncio
import struct
from datetime import UTC, datetime
from typing import Any

import pamqp.frame
import pytest
from aiormq.connection import FrameReceiver
from aiormq.exceptions import AMQPConnectionError, InvalidFrameError, ProtocolSyntaxError
from hypothesis import given
from hypothesis import strategies as st
from pamqp.body import ContentBody
from pamqp.commands import Basic, Connection
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat

from shared.frame_reading import LARGEST_FRAME, QuickFrameReceiver

names = st.text("abc.-_9", max_size=60)
texts = st.none() | st.text(max_size=40)
values = st.text(max_size=90) | st.binary(max_size=9).map(bytearray) | st.booleans() | st.integers(0, 2**40) | st.none()
properties = st.builds(
    Basic.Properties,
    content_type=texts,
    content_encoding=texts,
    headers=st.none() | st.dictionaries(names.filter(bool), values, max_size=4),
    delivery_mode=st.sampled_from([None, 1, 2]),
    priority=st.none() | st.integers(0, 255),
    correlation_id=texts,
    reply_to=texts,
    expiration=texts,
    message_id=texts,
    timestamp=st.none() | st.integers(0, 2**33).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
    message_type=texts,
    user_id=texts,
    app_id=texts,
)
frames = st.one_of(
    st.builds(Basic.Deliver, names, st.integers(0, 2**63 - 1), st.booleans(), names, names),
    st.builds(ContentHeader, st.just(0), st.integers(0, 2**40), properties),
    st.builds(ContentBody, st.binary(min_size=1, max_size=200)),
    st.builds(Basic.Ack, st.integers(0, 2**63 - 1), st.booleans()),
    st.builds(Connection.Blocked, names),
    st.just(Heartbeat()),
)


def wire(frame: Any, channel: int) -> bytes:
    return frame.marshal() if isinstance(frame, Heartbeat) else pamqp.frame.marshal(frame, channel)


async def read_all(receiver: FrameReceiver, count: int) -> list[tuple[int, int, str, Any]]:
    read = [await receiver.get_frame() for _ in range(count)]
    return [(weight, channel, type(frame).__name__, _content(frame)) for weight, channel, frame in read]


def _content(frame: Any) -> Any:
    match frame:
        case ContentBody():
            return frame.value
        case ContentHeader():
            return frame.body_size, dict(frame.properties)
        case Heartbeat():
            return None
        case _:
            return dict(frame)


def fed(*pieces: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    for piece in pieces:
        reader.feed_data(piece)
    reader.feed_eof()
    return reader


@given(st.lists(st.tuples(frames, st.integers(0, 2000)), min_size=1, max_size=12), st.data())
def test_frames_are_those_that_aiormq_reads(sent: list[tuple[Any, int]], data: Any) -> None:
    stream = b"".join(wire(frame, channel) for frame, channel in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    async def both() -> None:
        theirs = await read_all(FrameReceiver(fed(stream)), len(sent))
        assert await read_all(QuickFrameReceiver(fed(*pieces)), len(sent)) == theirs
        assert await read_one_by_one(pieces, len(sent)) == theirs

    asyncio.run(both())


async def read_one_by_one(pieces: list[bytes], count: int) -> list[tuple[int, int, str, Any]]:
    """Each piece comes when all before it has been read."""
    reader = asyncio.StreamReader()

    async def feed() -> None:
        for piece in pieces:
            reader.feed_data(piece)
            await asyncio.sleep(0)
        reader.feed_eof()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(feed())
        return await read_all(QuickFrameReceiver(reader), count)
    raise AssertionError("never here")


async def test_a_stream_that_ends_is_a_lost_connection() -> None:
    receiver = QuickFrameReceiver(fed(wire(Basic.Ack(1), 1), b"\x01\x00"))
    await receiver.get_frame()
    with pytest.raises((AMQPConnectionError, StopAsyncIteration)):
        await receiver.get_frame()


async def test_a_frame_without_its_end_is_refused() -> None:
    with pytest.raises(InvalidFrameError):
        await QuickFrameReceiver(fed(wire(Basic.Ack(1), 1)[:-1] + b"x")).get_frame()


async def test_a_method_that_nobody_knows_is_refused() -> None:
    unknown = struct.pack(">BHIHHB", 1, 1, 4, 999, 999, 0xCE)
    with pytest.raises(InvalidFrameError):
        await QuickFrameReceiver(fed(unknown)).get_frame()


async def test_a_broker_that_speaks_another_version_is_told_apart() -> None:
    with pytest.raises(ProtocolSyntaxError):
        await QuickFrameReceiver(fed(b"AMQP\x00\x00\x09\x01")).get_frame()


@pytest.mark.parametrize(("offered", "accepted"), [(0, LARGEST_FRAME), (2**24, LARGEST_FRAME), (8192, 8192)])
async def test_no_broker_may_send_frames_of_any_size(offered: int, accepted: int) -> None:
    _, _, tune = await QuickFrameReceiver(fed(wire(Connection.Tune(2047, offered, 60), 0))).get_frame()
    assert isinstance(tune, Connection.Tune)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, accepted, 60)
