"""The parked copy holds or leaves out every header that the decoder can read, so parking raises no error."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp.commands import Basic

from shared.amqp.message import IncomingMessage
from shared.amqp.parking import make_parked_copy
from shared.amqp.wire.publishing import publish_frames
from tests.hostile.case import Case
from tests.hostile.reading import received
from tests.hostile.wire import entry, long, nested_lists, nested_tables, table, well_behaved
from tests.support.builders import NOON
from tests.unit.recurrence.rules_at_random import repeatable

SMALLEST_FRAME = 4096 - 8

VALUES = st.one_of(
    st.tuples(st.sampled_from("tbBsuIilLfdDSATFVxZ"), st.binary(max_size=12)).map(lambda v: v[0].encode() + v[1]),
    st.binary(max_size=20).map(lambda value: b"S" + long(value)),
    st.binary(max_size=20).map(lambda value: b"A" + long(value)),
)
ENTRIES = st.tuples(st.binary(max_size=10), VALUES).map(lambda both: entry(*both))


def assert_it_can_be_parked(headers: bytes) -> None:
    message = received(Case("x", b"{", "body", properties=well_behaved(headers=headers)))
    deep_in_a_program(lambda: write_parked_copy(message), frames=80)


def write_parked_copy(message: IncomingMessage) -> None:
    copy = make_parked_copy(message, exchange="parked", errors=["body: x"], parked_by="consumer")
    Basic.Properties(headers=copy.headers, timestamp=copy.timestamp, message_type=copy.type).marshal()


def deep_in_a_program(action: Callable[[], None], frames: int) -> None:
    """Check that a message that was read with a nearly empty stack can be parked where less of the stack is left."""
    return deep_in_a_program(action, frames - 1) if frames else action()


def test_a_parked_message_has_the_body_that_arrived() -> None:
    """The body is the same byte for byte, although it could not be read as a command."""
    body = b'{"id": "x", \x00\xff not JSON'
    message = received(Case("x", body, "body", properties=well_behaved()))
    assert make_parked_copy(message, exchange="parked", errors=["body: x"], parked_by="consumer").body == body


@repeatable
@given(st.lists(ENTRIES, max_size=4))
def test_any_headers_can_be_parked(entries: list[bytes]) -> None:
    assert_it_can_be_parked(table(*entries))


@pytest.mark.parametrize("depth", [1, 31, 32, 33, 100, 300, 400, 420, 440, 450, 460, 470, 480, 490, 1000])
def test_headers_of_any_depth_can_be_parked(depth: int) -> None:
    assert_it_can_be_parked(table(entry(b"a", nested_lists(depth))))
    assert_it_can_be_parked(table(entry(b"a", nested_tables(depth))))


@given(st.binary(min_size=0, max_size=255))
def test_any_routing_key_arrives_and_can_be_written_again(key: bytes) -> None:
    message = received(Case("x", b"{", "body", key=key.decode(errors="surrogateescape")))
    assert len(message.routing_key.encode()) <= 255
    if key.isascii():
        assert message.routing_key == key.decode()


def test_a_parked_message_fits_into_the_smallest_frame_of_amqp() -> None:
    """AMQP 0-9-1, 4.2.3: the smallest frame has 4,096 bytes, eight of them for its head and end."""
    longest, name = "é" * 127, "n" * 255
    message = IncomingMessage(
        1, b"{", longest, longest, name, name, name, 255, longest, name, name, name, NOON, {"a": "x" * 9_000}, None,
        name,
    )  # fmt: skip
    copy = make_parked_copy(message, exchange="parked", errors=["body: " + "😀" * 290] * 10, parked_by="consumer")
    frames = publish_frames(copy, "n" * 40, 1, SMALLEST_FRAME)
    header_at = frames.index(b"\xce\x02") + 1
    (size,) = struct.unpack_from(">I", frames, header_at + 3)
    assert size <= SMALLEST_FRAME
    assert b"body: " in frames[header_at : header_at + size]
    assert b"xxx" in publish_frames(copy, "n" * 40, 1, 128 * 1024)
