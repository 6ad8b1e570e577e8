"""Our own encoder writes what pamqp, the library, would write: byte for byte."""

import struct
from datetime import UTC, datetime
from typing import Any

import pamqp.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from shared.amqp.message import OutgoingMessage
from shared.amqp.wire.publishing import publish_frames

CHANNEL, MAX_BODY = 7, 100

short_text = st.text(max_size=60).filter(lambda text: len(text.encode()) <= 255)
maybe_text = st.none() | short_text
headers = st.dictionaries(
    st.text(min_size=1, max_size=40),
    st.text(max_size=300)
    | st.integers(-(2**31), 2**31 - 1)
    | st.booleans()
    | st.lists(st.text(max_size=5), max_size=3),
    max_size=4,
)
messages = st.builds(
    OutgoingMessage,
    exchange=short_text,
    routing_key=short_text,
    body=st.binary(max_size=350),
    type=maybe_text,
    content_type=maybe_text,
    content_encoding=maybe_text,
    priority=st.none() | st.integers(0, 255),
    app_id=maybe_text,
    correlation_id=maybe_text,
    reply_to=maybe_text,
    timestamp=st.none() | st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    headers=headers,
    mandatory=st.booleans(),
)


def by_pamqp(message: OutgoingMessage, message_id: str) -> bytes:
    properties = Basic.Properties(
        message_id=message_id,
        delivery_mode=2,
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        priority=message.priority,
        app_id=message.app_id,
        message_type=message.type,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        timestamp=message.timestamp,
        headers=message.headers or None,
    )
    starts = range(0, len(message.body), MAX_BODY)
    frames: list[Any] = [
        publish_of(message),
        ContentHeader(body_size=len(message.body), properties=properties),
        *(ContentBody(message.body[start : start + MAX_BODY]) for start in starts),
    ]
    return b"".join(pamqp.frame.marshal(frame, CHANNEL) for frame in frames)


def publish_of(message: OutgoingMessage) -> Basic.Publish:
    return Basic.Publish(exchange=message.exchange, routing_key=message.routing_key, mandatory=message.mandatory)


@given(messages, short_text.filter(bool))
def test_the_frames_of_a_message_are_those_that_pamqp_writes(message: OutgoingMessage, message_id: str) -> None:
    try:
        expected = by_pamqp(message, message_id)
    except ValueError:  # pamqp has opinions about names of exchanges; the broker has its own
        return
    assert publish_frames(message, message_id, CHANNEL, MAX_BODY) == expected


@pytest.mark.parametrize("size", [0, 1, MAX_BODY - 1, MAX_BODY, MAX_BODY + 1, 3 * MAX_BODY, 3 * MAX_BODY + 1])
def test_a_body_is_cut_into_frames_where_pamqp_would_cut_it(size: int) -> None:
    message = OutgoingMessage("events", "due.event.x", b"x" * size)
    assert publish_frames(message, "id-1", CHANNEL, MAX_BODY) == by_pamqp(message, "id-1")


def test_a_name_of_a_header_that_is_too_long_is_cut_as_pamqp_cuts_it() -> None:
    message = OutgoingMessage("events", "due.event.x", b"{}", headers={"n" * 200: "value"})
    assert publish_frames(message, "id-1", CHANNEL, MAX_BODY) == by_pamqp(message, "id-1")


@pytest.mark.parametrize("max_body", [0, -8])
def test_without_a_limit_a_body_is_one_frame(max_body: int) -> None:
    message = OutgoingMessage("events", "due.event.x", b"x" * 50)
    assert publish_frames(message, "id-1", CHANNEL, max_body) == by_pamqp(message, "id-1")
    assert publish_frames(replace(message, body=b""), "id-1", CHANNEL, max_body).count(b"\xce") == 2


def test_headers_that_a_frame_cannot_hold_give_way_to_shorter_ones() -> None:
    message = OutgoingMessage("events", "key", b"{}", headers={"a": "x" * 40}, short_headers={"a": "y"})
    as_it_is, shortened = by_pamqp(message, "id-1"), by_pamqp(replace(message, headers={"a": "y"}), "id-1")
    (header_size,) = struct.unpack_from(">I", as_it_is, len(pamqp.frame.marshal(publish_of(message), CHANNEL)) + 3)
    assert publish_frames(message, "id-1", CHANNEL, header_size) == as_it_is
    assert publish_frames(message, "id-1", CHANNEL, 0) == as_it_is
    assert publish_frames(message, "id-1", CHANNEL, header_size - 1) == shortened
