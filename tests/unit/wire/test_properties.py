"""Our own reader of properties reads what pamqp's would, and refuses what pamqp would guess at or be slow over."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import decode, encode

from shared.amqp.wire.properties import MAX_FIELDS, PropertyReader
from tests.hostile.case import Case
from tests.hostile.reading import received
from tests.hostile.wire import entry, long, nested_tables, properties, table, with_flags
from tests.support.raw_publishing import short

names = st.text(min_size=1, max_size=20)
scalars = st.one_of(
    st.text(max_size=30),
    st.binary(max_size=30).map(bytearray),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, width=32),
    st.decimals(0, 1000, places=2),
    st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    st.none(),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4))


def read_table(data: bytes) -> Any:
    return PropertyReader(data).read("table")


@given(st.dictionaries(names, values, max_size=5))
def test_a_table_is_read_as_pamqp_reads_it(headers: dict[str, Any]) -> None:
    written = encode.field_table(headers)
    assert read_table(written) == decode.field_table(written)[1]


@given(st.lists(st.sampled_from("tbBsuIilLfdDSATFVx\0"), max_size=6), st.binary(max_size=60))
def test_what_we_make_of_any_bytes_pamqp_makes_of_them_too(letters: list[str], noise: bytes) -> None:
    fields = b"".join(entry(b"%d" % n, letter.encode() + noise[n : n + 9]) for n, letter in enumerate(letters))
    written = table(fields)
    try:
        found = read_table(written)
    except (ValueError, ArithmeticError, OSError):
        return
    assert repr(found) == repr(decode.field_table(written)[1])  # there may be a NaN


@pytest.mark.parametrize(
    "written",
    [
        long(b"x" * 10)[:-1],
        table(entry(b"a", b"S" + (9).to_bytes(4, "big") + b"x")),
        table(entry(b"a", b"A" + (1).to_bytes(4, "big") + b"I") + b"\0" * 4),
        table(b"\x05a"),
        table(entry(b"a", b"Z")),
        table(b"\x01a"),
    ],
)
def test_what_does_not_end_where_it_says_is_refused(written: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut short|where it should|no type"):
        read_table(written)


def test_fields_are_counted_at_every_level() -> None:
    allowed = table(entry(b"a", b"A" + long(b"V" * (MAX_FIELDS - 1))))
    assert len(read_table(allowed)["a"]) == MAX_FIELDS - 1
    with pytest.raises(ValueError, match="fields"):
        read_table(table(entry(b"a", b"A" + long(b"V" * MAX_FIELDS))))
    with pytest.raises(ValueError, match="fields"):
        read_table(table(*[entry(b"a", nested_tables(9))] * (MAX_FIELDS // 10 + 1)))


def test_as_many_deaths_as_a_message_can_die_are_read() -> None:
    """As RabbitMQ writes them, for a hundred queues."""
    death: dict[str, Any] = {
        "count": 3,
        "exchange": "schedule.commands",
        "queue": "scheduler.inbox",
        "reason": "delivery_limit",
        "original-expiration": "86400000",
        "routing-keys": ["schedule.request", "copy"],
        "time": datetime(2026, 7, 10, tzinfo=UTC),
    }
    written = encode.field_table({"x-death": [death] * 100, "x-first-death-queue": "scheduler.inbox"})
    assert read_table(written)["x-death"] == [death] * 100


@pytest.mark.parametrize("bits", [0, 1, 2, 3])
def test_flags_are_one_word_and_its_low_bits_mean_nothing(bits: int) -> None:
    sent = properties(content_type=short(b"b\0\0\x08operator"), expiration=short(b"8640"), user_id=short(b"mallory"))
    message = received(Case("x", b"{}", None, properties=with_flags(bits, sent)))
    assert (message.user_id, message.content_type, message.unreadable) == ("mallory", "b\0\0\x08operator", None)


def test_bytes_after_the_last_property_make_a_message_unreadable() -> None:
    sent = properties(content_type=short(b"text/plain"), user_id=short(b"mallory")) + short(b"operator")
    assert (
        received(Case("x", b"{}", None, properties=sent)).unreadable == "properties: 9 bytes more than there should be"
    )


def test_what_was_read_before_an_unreadable_property_is_kept_and_nothing_after_it() -> None:
    sent = properties(content_type=short(b"text/plain"), headers=table(b"\xff"), user_id=short(b"mallory"))
    message = received(Case("x", b"{}", None, properties=sent))
    assert (message.content_type, message.user_id) == ("text/plain", None)
    assert message.unreadable is not None
    assert message.unreadable.startswith("headers: ")
