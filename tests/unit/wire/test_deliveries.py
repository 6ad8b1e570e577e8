"""Messages for an inbox, read in one go or frame by frame, are what pamqp would have made of them: however they are cut
on their way, and whatever comes between them.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pamqp.frame
import pytest
from aiormq.exceptions import InvalidFrameError
from hypothesis import given
from hypothesis import strategies as st
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat

from shared.amqp.message import IncomingMessage
from shared.amqp.wire.connection import SplittingReader
from shared.amqp.wire.deliveries import FLAGS, HEAD, MAX_WAITING_BYTES, Deliveries, frame_end
from shared.amqp.wire.properties import MAX_FIELDS
from tests.unit.wire.test_splitter import cut, fed, frames, names, properties, read_all, wire

CHANNEL = 1  # the inbox's channel
ANOTHER = 7


def a_message(
    tag: int = 1,
    body: bytes = b"{}",
    *,
    its_properties: Basic.Properties | None = None,
    key: str = "due.webhook.x",
    max_frame: int = 131_000,
    consumer: str = "duebell",
    channel: int = CHANNEL,
    redelivered: bool = False,
) -> list[bytes]:
    """Its frames."""
    header = ContentHeader(0, len(body), its_properties or Basic.Properties(message_type="ScheduleDue"))
    bodies = [ContentBody(body[start : start + max_frame]) for start in range(0, len(body), max_frame)]
    parts: list[Any] = [Basic.Deliver(consumer, tag, redelivered, "schedule.events", key), header, *bodies]
    return [pamqp.frame.marshal(part, channel) for part in parts]


messages_to_us = st.builds(
    a_message,
    st.integers(1, 2**63 - 1),
    st.binary(max_size=300),
    its_properties=properties,
    key=names,
    max_frame=st.sampled_from([100, 131_000]),
    redelivered=st.booleans(),
).map(b"".join)
messages_to_others = st.builds(a_message, consumer=st.just("another"), channel=st.just(ANOTHER)).map(b"".join)
other_frames = st.builds(wire, frames, st.just(ANOTHER))


class FrameByFrame(Deliveries):
    """Takes no message in one go."""

    def take(self, data: bytes, start: int) -> int | None:
        end = frame_end(data, start)
        return end if self._take_frame(data, start, end) else None


class Read:
    """A connection whose first channel is an inbox's."""

    def __init__(self, kind: type[Deliveries] = Deliveries) -> None:
        self.messages: list[IncomingMessage] = []
        self.reader = SplittingReader()
        self.reader.divert(CHANNEL, kind(self.messages.append))

    def all_of(self, *pieces: bytes) -> "Read":
        fed(*pieces, reader=self.reader)
        return self

    async def left(self) -> list[tuple[int, str]]:
        """What aiormq reads, apart from heartbeats."""
        return [(channel, name) for _, channel, name, _ in await read_all(self.reader) if name != "Heartbeat"]


def by_pamqp(stream: bytes) -> tuple[list[IncomingMessage], list[tuple[int, str]]]:
    """What an inbox gets, and what is left: as pamqp decodes the frames."""
    messages, left, start = [], [], 0
    delivery, header, header_bytes, body = Basic.Deliver(), ContentHeader(), b"", b""
    while start < len(stream):
        end = frame_end(stream, start)
        _, channel, frame = pamqp.frame.unmarshal(stream[start:end])
        payload, start = stream[start + HEAD : end - 1], end
        if channel != CHANNEL:
            left += [] if isinstance(frame, Heartbeat) else [(channel, type(frame).__name__)]
            continue
        match frame:
            case Basic.Deliver():
                delivery = frame
            case ContentHeader():
                header, header_bytes, body = frame, payload[FLAGS:], b""
            case ContentBody():
                body += frame.value
        if not isinstance(frame, Basic.Deliver) and len(body) == header.body_size:
            messages.append(_put_together(delivery, header.properties, body, header_bytes))
    return messages, left


def _put_together(delivery: Basic.Deliver, its: Basic.Properties, body: bytes, header: bytes) -> IncomingMessage:
    return IncomingMessage(
        tag=delivery.delivery_tag or 0,
        body=body,
        exchange=delivery.exchange or "",
        routing_key=delivery.routing_key or "",
        type=its.message_type,
        content_type=its.content_type,
        content_encoding=its.content_encoding,
        priority=its.priority,
        message_id=its.message_id,
        app_id=its.app_id,
        correlation_id=its.correlation_id,
        reply_to=its.reply_to,
        timestamp=its.timestamp,
        headers=dict(its.headers or {}),
        unreadable=None,
        user_id=its.user_id or None,
        header=header,
        routing_key_bytes=(delivery.routing_key or "").encode(),
        redelivered=bool(delivery.redelivered),
    )


@given(st.lists(messages_to_us | messages_to_others | other_frames, min_size=1, max_size=10), st.data())
def test_messages_are_those_that_pamqp_would_read(sent: list[bytes], data: Any) -> None:
    stream = b"".join(sent)
    pieces = cut(stream, sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6))))

    async def both() -> None:
        messages, left = by_pamqp(stream)
        for found in (Read().all_of(stream), Read().all_of(*pieces), Read(FrameByFrame).all_of(*pieces)):
            assert found.messages == messages
            assert await found.left() == left

    asyncio.run(both())


PLAIN = a_message(
    3,
    b'{"n":1}',
    its_properties=Basic.Properties(
        content_type="text/plain",
        headers={"a": "b", "c": "d"},
        priority=4,
        timestamp=datetime(2026, 7, 10, tzinfo=UTC),
        message_type="T",
    ),
)


async def test_a_message_with_an_odd_byte_is_the_same_in_one_go_and_frame_by_frame() -> None:
    whole, after_it = b"".join(PLAIN), b"".join(a_message(4))
    for place, byte in enumerate(whole):
        for odd in {0, 1, ord("I"), 127, 128, 255, (byte - 1) % 256, (byte + 1) % 256} - {byte}:
            stream = whole[:place] + bytes([odd]) + whole[place + 1 :] + after_it
            assert await _read(Deliveries, stream) == await _read(FrameByFrame, stream), (place, odd)


async def _read(kind: type[Deliveries], stream: bytes) -> Any:
    """What is read, and what aiormq makes of the rest: nothing, perhaps."""
    read = Read(kind).all_of(stream)
    try:
        left = await read.left()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return read.messages, type(error).__name__ if isinstance(error, InvalidFrameError) else "unreadable"
    return read.messages, left


@pytest.mark.parametrize("consumer", ["", "x" * 255])
async def test_a_consumer_may_have_any_name(consumer: str) -> None:
    read = Read().all_of(*a_message(5, consumer=consumer))
    assert [(message.tag, message.routing_key) for message in read.messages] == [(5, "due.webhook.x")]


async def test_messages_of_two_channels_keep_apart() -> None:
    others: list[IncomingMessage] = []
    read = Read()
    read.reader.divert(ANOTHER, Deliveries(others.append))
    first, second, third = a_message(1), a_message(1, channel=ANOTHER, max_frame=1), a_message(2)
    mixed = [*first[:2], second[0], first[2], *second[1:3], *third, *second[3:]]
    read.all_of(b"".join(mixed))
    assert [message.tag for message in read.messages] == [1, 2]
    assert [message.body for message in others] == [b"{}"]
    assert await read.left() == []


async def test_something_between_the_frames_of_a_message_does_no_harm() -> None:
    method, header, body = a_message(1)
    for stream in (
        [method, wire(Basic.QosOk(), CHANNEL), header, body],
        [method, header, wire(Basic.QosOk(), CHANNEL), body],
    ):
        read = Read().all_of(b"".join(stream))
        assert [message.body for message in read.messages] == [b"{}"]
        assert await read.left() == [(CHANNEL, "QosOk")]


async def test_answers_on_the_channel_and_content_without_a_delivery_are_left_to_aiormq() -> None:
    got = [wire(Basic.GetOk(1, False, "x", "k", 0), CHANNEL), *a_message(1)[1:]]
    read = Read().all_of(*got, *a_message(2), wire(Basic.CancelOk("duebell"), CHANNEL))
    assert [message.tag for message in read.messages] == [2]
    assert [name for _, name in await read.left()] == ["GetOk", "ContentHeader", "ContentBody", "CancelOk"]


async def test_a_large_message_is_not_gathered_twice() -> None:
    """What has come of it is taken frame by frame; nothing is copied again with every piece."""
    whole = b"".join(a_message(1, bytes(8 * MAX_WAITING_BYTES), max_frame=MAX_WAITING_BYTES))
    read, longest_rest = Read(), 0
    for piece in cut(whole, list(range(5000, len(whole), 5000))):
        read.reader.feed_data(piece)
        longest_rest = max(longest_rest, len(read.reader._unfinished))
    assert [len(message.body) for message in read.messages] == [8 * MAX_WAITING_BYTES]
    assert longest_rest <= 2 * MAX_WAITING_BYTES


@pytest.mark.parametrize("fields", [MAX_FIELDS, MAX_FIELDS + 1])
async def test_headers_have_as_many_fields_as_they_may_however_they_come(fields: int) -> None:
    headers: dict[str, Any] = {f"{number:03x}": "" for number in range(fields)}
    stream = b"".join(a_message(its_properties=Basic.Properties(headers=headers)))
    found, frame_by_frame = Read().all_of(stream), Read(FrameByFrame).all_of(stream)
    assert found.messages == frame_by_frame.messages
    assert (found.messages[0].unreadable is None) == (fields <= MAX_FIELDS)


async def test_names_that_are_not_utf_8_arrive_spelled_out() -> None:
    stream = (
        b"".join(a_message(key="k?y")).replace(b"k?y", b"k\xffy").replace(b"schedule.events", b"schedule.event\xe9")
    )
    [message] = Read().all_of(stream).messages
    assert (message.routing_key, message.exchange) == (r"k\xffy", r"schedule.event\xe9")


async def test_a_body_without_its_header_ends_the_connection() -> None:
    delivery, _, body = a_message(2)
    read = Read().all_of(*a_message(1), delivery, body)
    assert [message.tag for message in read.messages] == [1]
    with pytest.raises(InvalidFrameError):
        await read.left()


async def test_a_delivery_that_is_cut_short_ends_the_connection() -> None:
    short = wire(Basic.Deliver("duebell", 1, False, "", "key"), CHANNEL)
    short = short[:3] + (len(short) - 8 - 2).to_bytes(4, "big") + short[7:-3] + short[-1:]
    read = Read().all_of(short + b"".join(a_message(2)))
    assert read.messages == []
    with pytest.raises(InvalidFrameError):
        await read.left()
