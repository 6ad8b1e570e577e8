"""Messages for an inbox, read in one go, are what aiormq's frames would have made of them: however they are cut on
their way, and whatever comes between them.
"""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pamqp.frame
import pytest
from aiormq.channel import Channel
from aiormq.connection import FrameReceiver
from aiormq.exceptions import AMQPConnectionError, InvalidFrameError
from hypothesis import given
from hypothesis import strategies as st
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat

from shared.frame_reading import MOST_OF_A_MESSAGE, QuickFrameReceiver
from shared.inbox import Inbox
from shared.message_reading import CONSUMER_TAG
from shared.properties import tolerate_unreadable_properties
from shared.property_reading import MOST_FIELDS
from shared.received import Received
from tests.unit.test_frame_reading import fed, frames, names, properties, wire

OURS = 1  # the inbox's channel
ANOTHER = 7


@pytest.fixture(autouse=True)
def _as_in_a_service() -> None:
    tolerate_unreadable_properties()


def a_message(
    tag: int = 1,
    body: bytes = b"{}",
    *,
    its_properties: Basic.Properties | None = None,
    key: str = "due.webhook.x",
    max_frame: int = 131_000,
    consumer: str = CONSUMER_TAG,
    channel: int = OURS,
) -> list[bytes]:
    """Its frames."""
    header = ContentHeader(0, len(body), its_properties or Basic.Properties(message_type="ScheduleDue"))
    bodies = [ContentBody(body[start : start + max_frame]) for start in range(0, len(body), max_frame)]
    parts: list[Any] = [Basic.Deliver(consumer, tag, False, "schedule.events", key), header, *bodies]
    return [pamqp.frame.marshal(part, channel) for part in parts]


messages_to_us = st.builds(
    a_message,
    st.integers(1, 2**63 - 1),
    st.binary(max_size=300),
    its_properties=properties,
    key=names,
    max_frame=st.sampled_from([100, 131_000]),
).map(b"".join)
messages_to_others = st.builds(a_message, consumer=st.just("somebody"), channel=st.just(ANOTHER)).map(b"".join)
other_frames = st.builds(wire, frames, st.just(ANOTHER)) | st.just(Heartbeat().marshal())


class Read:
    """What an inbox has taken of a stream, and what it, or any other channel, was left with."""

    def __init__(self) -> None:
        self.left: list[tuple[int, str]] = []
        self._channel = SimpleNamespace(frames=SimpleNamespace(put=self._leave), is_closed=False)
        self._inbox = Inbox(cast("Channel", self._channel))

    async def _leave(self, weight_and_frame: tuple[int, Any]) -> None:
        self.left.append((OURS, type(weight_and_frame[1]).__name__))

    async def all_of(self, receiver: FrameReceiver) -> "Read":
        try:
            while True:
                weight, channel, frame = await receiver.get_frame()
                if channel == OURS:
                    await self._channel.frames.put((weight, frame))
                else:
                    self.left.append((channel, type(frame).__name__))
        except (AMQPConnectionError, StopAsyncIteration):
            return self

    @property
    def messages(self) -> list[Received]:
        return list(self._inbox._received)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    return [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]


@given(st.lists(messages_to_us | messages_to_others | other_frames, min_size=1, max_size=10), st.data())
def test_messages_are_those_that_aiormq_would_read(sent: list[bytes], data: Any) -> None:
    stream = b"".join(sent)
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))

    async def both() -> None:
        theirs = await Read().all_of(FrameReceiver(fed(stream)))
        for ours in (
            await Read().all_of(QuickFrameReceiver(fed(stream))),
            await Read().all_of(QuickFrameReceiver(PieceByPiece(cut(stream, places)))),
        ):
            assert ours.messages == theirs.messages
            assert ours.left == theirs.left

    asyncio.run(both())


class PieceByPiece(asyncio.StreamReader):
    """Each read gives one piece."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__()
        self._pieces = [piece for piece in pieces if piece]

    async def read(self, _: int = -1) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


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


async def test_a_message_with_an_odd_byte_is_read_as_aiormq_reads_it() -> None:
    whole, after_it = b"".join(PLAIN), b"".join(a_message(4))
    for place, byte in enumerate(whole):
        for odd in {0, 1, ord("I"), 127, 128, 255, (byte - 1) % 256, (byte + 1) % 256} - {byte}:
            stream = whole[:place] + bytes([odd]) + whole[place + 1 :] + after_it
            theirs, ours = await _read(FrameReceiver(fed(stream))), await _read(QuickFrameReceiver(fed(stream)))
            assert ours == theirs, (place, odd)


async def _read(receiver: FrameReceiver) -> Any:
    """What is read, or that nothing can be made of it."""
    try:
        read = await Read().all_of(receiver)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return type(error).__name__ if isinstance(error, InvalidFrameError) else "unreadable"
    return read.messages, read.left


async def test_messages_that_come_together_are_handed_on_together() -> None:
    stream = b"".join(part for tag in (1, 2, 3) for part in a_message(tag))
    _, channel, messages = await QuickFrameReceiver(fed(stream)).get_frame()
    assert channel == OURS
    assert [message.tag for message in cast("list[Received]", messages)] == [1, 2, 3]


async def test_messages_of_two_channels_keep_apart() -> None:
    stream = b"".join([*a_message(1), *a_message(1, channel=ANOTHER), *a_message(2)])
    receiver = QuickFrameReceiver(fed(stream))
    handed_on = [await receiver.get_frame() for _ in range(3)]
    assert [channel for _, channel, _ in handed_on] == [OURS, ANOTHER, OURS]


async def test_something_between_the_frames_of_a_message_does_no_harm() -> None:
    method, header, body = a_message(1)
    for stream in ([method, Heartbeat().marshal(), header, body], [method, header, Heartbeat().marshal(), body]):
        read = await Read().all_of(QuickFrameReceiver(fed(b"".join(stream))))
        assert [message.body for message in read.messages] == [b"{}"]
        assert read.left == [(0, "Heartbeat")]


async def test_a_large_message_is_not_gathered_twice() -> None:
    """What has come of it becomes frames; nothing is copied again with every piece."""
    whole = b"".join(a_message(1, bytes(8 * MOST_OF_A_MESSAGE), max_frame=MOST_OF_A_MESSAGE))
    receiver = QuickFrameReceiver(PieceByPiece(cut(whole, list(range(5000, len(whole), 5000)))))
    longest_rest = 0
    read = Read()
    while not read.messages:
        weight, _, frame = await receiver.get_frame()
        longest_rest = max(longest_rest, len(receiver._rest))
        await read._channel.frames.put((weight, frame))
    assert len(read.messages[0].body) == 8 * MOST_OF_A_MESSAGE
    assert longest_rest <= 2 * MOST_OF_A_MESSAGE


@pytest.mark.parametrize("fields", [MOST_FIELDS, MOST_FIELDS + 1])
async def test_headers_have_as_many_fields_as_they_may_however_they_come(fields: int) -> None:
    headers: dict[str, Any] = {f"{number:03x}": "" for number in range(fields)}
    stream = b"".join(a_message(its_properties=Basic.Properties(headers=headers)))
    ours, theirs = [await Read().all_of(reader(fed(stream))) for reader in (QuickFrameReceiver, FrameReceiver)]
    assert ours.messages == theirs.messages
    assert (ours.messages[0].unreadable is None) == (fields <= MOST_FIELDS)
