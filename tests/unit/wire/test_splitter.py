"""aiormq reads from a splitting reader what it would have read without one, except for what was taken out."""

import asyncio
import struct
from datetime import UTC, datetime
from typing import Any, cast

import pamqp.frame
import pytest
from aiormq.connection import FrameReceiver
from aiormq.exceptions import AMQPConnectionError, InvalidFrameError, ProtocolSyntaxError
from hypothesis import given
from hypothesis import strategies as st
from pamqp.body import ContentBody
from pamqp.commands import Basic, Channel, Connection
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat

from shared.amqp.wire.connection import MAX_FRAME_BYTES, SplittingReader
from shared.amqp.wire.deliveries import frame_end

CHANNEL = 1

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


async def read_all(reader: asyncio.StreamReader) -> list[tuple[int, int, str, Any]]:
    """Until the stream ends."""
    receiver, read = FrameReceiver(reader), []
    try:
        while True:
            weight, channel, frame = await receiver.get_frame()
            read.append((weight, channel, type(frame).__name__, _content(frame)))
    except (AMQPConnectionError, StopAsyncIteration):
        return read


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


def fed(*pieces: bytes, reader: asyncio.StreamReader | None = None) -> asyncio.StreamReader:
    """A splitting reader, unless another one is given."""
    reader = reader or SplittingReader()
    for piece in pieces:
        reader.feed_data(piece)
    reader.feed_eof()
    return reader


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    return [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]


class TakeAll:
    """Takes every frame of its channel."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def take(self, data: bytes, start: int) -> int | None:
        end = frame_end(data, start)
        self.taken.append(data[start:end])
        return end


class TakeDeliveries(TakeAll):
    def take(self, data: bytes, start: int) -> int | None:
        return super().take(data, start) if data.startswith(struct.pack(">HH", 60, 60), start + 7) else None


@given(st.lists(st.tuples(frames, st.integers(0, 2000)), min_size=1, max_size=12), st.data())
def test_frames_are_those_that_aiormq_reads(sent: list[tuple[Any, int]], data: Any) -> None:
    stream = b"".join(wire(frame, channel) for frame, channel in sent)
    pieces = cut(stream, sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6))))

    async def both() -> None:
        expected = await read_all(fed(stream, reader=asyncio.StreamReader()))
        assert len(expected) == len(sent)
        assert await read_all(fed(*pieces)) == expected

    asyncio.run(both())


@given(st.lists(st.tuples(frames, st.sampled_from([CHANNEL, 2])), min_size=1, max_size=12), st.data())
def test_what_is_taken_and_what_is_left_is_all_there_is(sent: list[tuple[Any, int]], data: Any) -> None:
    written = [(channel, wire(frame, channel)) for frame, channel in sent]
    stream = b"".join(frame for _, frame in written)
    pieces = cut(stream, sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6))))

    async def split() -> None:
        reader, taker = SplittingReader(), TakeAll()
        reader.divert(CHANNEL, taker)
        left = await read_all(fed(*pieces, reader=reader))
        heartbeats = [wire(Heartbeat(), 0)]  # these are of channel 0, whatever was asked for
        expected = [frame for channel, frame in written if channel == CHANNEL and frame not in heartbeats]
        assert taker.taken == expected
        others = [frame for frame in left if frame[2] != "Heartbeat"]
        assert len(others) == len([f for c, f in written if c != CHANNEL and f not in heartbeats])

    asyncio.run(split())


async def test_a_stream_that_ends_is_a_lost_connection() -> None:
    receiver = FrameReceiver(fed(wire(Basic.Ack(1), 1), b"\x01\x00"))
    await receiver.get_frame()
    with pytest.raises((AMQPConnectionError, StopAsyncIteration)):
        await receiver.get_frame()


async def test_a_frame_without_its_end_is_refused() -> None:
    with pytest.raises(InvalidFrameError):
        await FrameReceiver(fed(wire(Basic.Ack(1), 1)[:-1] + b"x")).get_frame()


async def test_after_bytes_that_are_no_frame_nothing_is_taken_and_the_connection_ends() -> None:
    reader, taker = SplittingReader(), TakeAll()
    reader.divert(CHANNEL, taker)
    reader.feed_data(wire(Basic.Ack(1), CHANNEL) + b"\x00nonsense" + wire(Basic.Ack(2), CHANNEL))
    reader.feed_data(wire(Basic.Ack(3), CHANNEL))
    assert len(taker.taken) == 1
    with pytest.raises(InvalidFrameError):
        await FrameReceiver(reader).get_frame()


async def test_an_unknown_method_is_refused() -> None:
    unknown = struct.pack(">BHIHHB", 1, 1, 4, 999, 999, 0xCE)
    with pytest.raises(InvalidFrameError):
        await FrameReceiver(fed(unknown)).get_frame()


async def test_a_broker_that_speaks_another_version_is_told_apart() -> None:
    with pytest.raises(ProtocolSyntaxError):
        await FrameReceiver(fed(b"AMQP\x00\x00\x09\x01")).get_frame()


@pytest.mark.parametrize(("offered", "accepted"), [(0, MAX_FRAME_BYTES), (2**24, MAX_FRAME_BYTES), (8192, 8192)])
async def test_no_broker_may_send_frames_of_any_size(offered: int, accepted: int) -> None:
    _, _, tune = await FrameReceiver(fed(wire(Connection.Tune(2047, offered, 60), 0))).get_frame()
    assert isinstance(tune, Connection.Tune)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, accepted, 60)


async def test_a_body_that_looks_like_a_method_is_left_as_it_is() -> None:
    bodies = [wire(frame, 0)[7:-1] for frame in (Connection.Tune(2047, 0, 60), Channel.CloseOk())]
    reader, taker = SplittingReader(), TakeDeliveries()
    reader.divert(CHANNEL, taker)
    delivery = wire(Basic.Deliver("x", 1, False, "", ""), CHANNEL)
    fed(*(wire(ContentBody(body), CHANNEL) for body in bodies), delivery, reader=reader)
    assert [content for *_, content in await read_all(reader) if content is not None] == bodies  # no heartbeat
    assert taker.taken == [delivery]


@pytest.mark.parametrize("closing", [Channel.Close(404, "gone", 0, 0), Channel.CloseOk()])
async def test_a_channel_is_taken_from_until_the_broker_has_closed_it(closing: Any) -> None:
    reader, taker = SplittingReader(), TakeDeliveries()
    reader.divert(CHANNEL, taker)
    delivery = wire(Basic.Deliver("x", 1, False, "", ""), CHANNEL)
    fed(delivery + wire(closing, CHANNEL) + delivery, reader=reader)
    assert taker.taken == [delivery]
    assert [name for _, _, name, _ in await read_all(reader)] == [type(closing).__name__, "Deliver"]


async def test_aiormq_gets_heartbeats_though_every_frame_is_taken() -> None:
    clock = [100.0]
    reader = SplittingReader(lambda: clock[0])
    reader.divert(CHANNEL, TakeAll())
    for _ in range(3):
        for _ in range(5):
            reader.feed_data(wire(Basic.Ack(1), CHANNEL))
        clock[0] += 1.0
    reader.feed_eof()
    assert [name for _, _, name, _ in await read_all(reader)] == ["Heartbeat"] * 3


async def test_a_handshake_that_comes_in_pieces_has_no_heartbeat_in_it() -> None:
    start = wire(Connection.Start(mechanisms="PLAIN"), 0)
    assert [name for _, _, name, _ in await read_all(fed(*cut(start, [3, 9, 20])))] == ["Start"]


class Socket:
    """As much of a transport as a reader uses."""

    def __init__(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


async def test_a_connection_reads_when_none_of_its_channels_is_full() -> None:
    reader, socket = SplittingReader(), Socket()
    reader.set_transport(cast("asyncio.BaseTransport", socket))
    reader.resume(1)
    reader.pause(1)
    reader.pause(2)
    reader.resume(1)
    assert not socket.reads
    reader.resume(2)
    assert socket.reads


async def test_a_full_channel_is_not_read_from_because_aiormq_has_caught_up() -> None:
    """A StreamReader pauses for a slow reader, and resumes by itself."""
    reader, socket = SplittingReader(), Socket()
    reader.set_transport(cast("asyncio.BaseTransport", socket))
    reader.pause(1)
    socket.resume_reading()
    reader.feed_data(wire(Basic.Ack(1), CHANNEL))
    assert not socket.reads
