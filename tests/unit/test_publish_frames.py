"""Our own encoder writes what pamqp, the library, would write: byte for byte."""

from datetime import UTC, datetime
from typing import Any

import pamqp.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from shared.outgoing import Outgoing
from shared.publish_frames import publish_frames

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
    Outgoing,
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


def by_pamqp(message: Outgoing, message_id: str) -> bytes:
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
        Basic.Publish(exchange=message.exchange, routing_key=message.routing_key, mandatory=message.mandatory),
        ContentHeader(body_size=len(message.body), properties=properties),
        *(ContentBody(message.body[start : start + MAX_BODY]) for start in starts),
    ]
    return b"".join(pamqp.frame.marshal(frame, CHANNEL) for frame in frames)


@given(messages, short_text.filter(bool))
def test_the_frames_of_a_message_are_those_that_pamqp_writes(message: Outgoing, message_id: str) -> None:
    try:
        theirs = by_pamqp(message, message_id)
    except ValueError:  # pamqp has opinions about names of exchanges; the broker has its own
        return
    assert publish_frames(message, message_id, CHANNEL, MAX_BODY) == theirs


@pytest.mark.parametrize("size", [0, 1, MAX_BODY - 1, MAX_BODY, MAX_BODY + 1, 3 * MAX_BODY, 3 * MAX_BODY + 1])
def test_a_body_is_cut_into_frames_where_pamqp_would_cut_it(size: int) -> None:
    message = Outgoing("events", "due.event.x", b"x" * size)
    assert publish_frames(message, "id-1", CHANNEL, MAX_BODY) == by_pamqp(message, "id-1")


def test_a_name_of_a_header_that_is_too_long_is_cut_as_pamqp_cuts_it() -> None:
    message = Outgoing("events", "due.event.x", b"{}", headers={"n" * 200: "value"})
    assert publish_frames(message, "id-1", CHANNEL, MAX_BODY) == by_pamqp(message, "id-1")
