"""The content header of a message is changed in place: what was not meant stays byte for byte."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from consumer.commands.delayed import (
    DelayedMessage,
    RefusedDelayed,
    read_delayed,
    undo_expiry,
    undo_redelivery,
)
from shared.amqp.content_header import ContentHeader, Unsplittable, negate, read_number
from shared.amqp.message import IncomingMessage
from tests.support.delayed import properties, short_text_table, table_header

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
DAY_MS = 24 * 3600 * 1000

texts = st.text(max_size=20)
scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    texts,
    st.floats(allow_nan=False, width=32),
    st.binary(max_size=9).map(bytearray),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
tables = st.dictionaries(st.text(max_size=30), values, max_size=5)
all_properties = st.fixed_dictionaries(
    {},
    optional={
        "headers": tables,
        "content_type": st.text(min_size=1, max_size=20),
        "content_encoding": st.text(min_size=1, max_size=20),
        "delivery_mode": st.sampled_from([1, 2]),
        "priority": st.integers(0, 9),
        "correlation_id": st.text(min_size=1, max_size=20),
        "reply_to": st.text(min_size=1, max_size=20),
        "expiration": st.integers(0, 10**9).map(str),
        "message_id": st.text(min_size=1, max_size=20),
        "timestamp": st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
            lambda moment: moment.replace(microsecond=0)
        ),
        "message_type": st.text(min_size=1, max_size=20),
        "app_id": st.text(min_size=1, max_size=20),
    },
)


def a_message(header: bytes, exchange: str = "delay.orders", **fields: Any) -> IncomingMessage:
    missing = dict.fromkeys(
        ("type", "content_type", "content_encoding", "priority", "message_id", "app_id", "correlation_id", "reply_to")
    )
    given = {"headers": {}, "timestamp": None, "unreadable": None, **missing, **fields}
    return IncomingMessage(
        **{"tag": 1, "body": b"body", "exchange": exchange, "routing_key": "key", **given},
        header=header,
        routing_key_bytes=b"key",
    )


def read(headers: dict[str, Any], **fields: Any) -> DelayedMessage | RefusedDelayed:
    return read_delayed(a_message(properties(headers=headers, **fields)), "delay.", NOW, 1000)


def due(header: bytes) -> timedelta | datetime | None:
    found = read_delayed(a_message(header), "delay.", NOW, 1000)
    assert isinstance(found, DelayedMessage), found
    return found.delay if found.due_at is None else found.due_at


@given(all_properties)
def test_a_header_without_changes_is_the_same(sent: dict[str, Any]) -> None:
    header = properties(**sent)
    assert ContentHeader(header).changed() == header
    assert [each.name for each in ContentHeader(header).headers()] == [
        k.encode() for k in sorted(sent.get("headers") or {})
    ]


# A number keeps its type. The negatives of these would have been sent in a shorter one.
delays = st.integers(1, 2**31).filter(lambda delay: delay not in {2**7, 2**15, 2**31})


@given(all_properties, delays, st.sampled_from(["", "alice"]))
def test_the_delay_becomes_its_negative_and_the_user_a_header_and_all_else_stays(
    sent: dict[str, Any], delay: int, user: str
) -> None:
    headers = {k: v for k, v in (sent.get("headers") or {}).items() if k not in {"x-delay", "duebell-id"}}
    mine = {**sent, "headers": {**headers, "x-delay": delay}}
    header = properties(**mine, **({"user_id": user} if user else {}))
    found = read_delayed(a_message(header), "delay.", NOW, 1000)
    assert isinstance(found, DelayedMessage)
    assert found.delay == timedelta(milliseconds=delay)
    plain = properties(**{**mine, "headers": {**headers, "x-delay": -delay}})
    if not user:
        assert found.header == plain
    else:
        # The header with the user is the last one.
        changed = ContentHeader(found.header)
        *others, last = changed.headers()
        assert (last.name, last.value) == (b"duebell-user-id", b"alice")
        assert [(each.name, each.value) for each in others] == [
            (e.name, e.value) for e in ContentHeader(plain).headers()
        ]
        assert changed.short_text("user_id") is None


def test_a_delay_arrives_as_its_negative_among_the_other_headers() -> None:
    found = read({"a": "b", "x-delay": 5, "z": 1})
    assert isinstance(found, DelayedMessage)
    assert found.header == properties(headers={"a": "b", "x-delay": -5, "z": 1})


def test_a_user_without_headers_gets_a_table() -> None:
    found = read_delayed(a_message(properties(user_id="bob", priority=1, content_type="a/b")), "delay.", NOW, 1000)
    assert isinstance(found, DelayedMessage)
    assert found.header == properties(headers={"duebell-user-id": "bob"}, priority=1, content_type="a/b")


def test_a_sender_who_gives_no_user_id_cannot_write_the_header_that_names_the_user() -> None:
    found = read({"a": 1, "duebell-user-id": "alice", "z": 2})
    assert isinstance(found, DelayedMessage)
    assert found.header == properties(headers={"a": 1, "z": 2})


@pytest.mark.parametrize(
    ("kind", "value", "milliseconds"),
    [
        (b"b", b"\x05", 5), (b"B", b"\xff", 255), (b"s", b"\x01\x00", 256), (b"u", b"\xff\xff", 65535),
        (b"I", b"\x00\x00\x03\xe8", 1000), (b"i", b"\xff\xff\xff\xff", 2**32 - 1),
        (b"l", (10**12).to_bytes(8, "big"), 10**12), (b"f", b"\x3f\xc0\x00\x00", 1.5),
        (b"d", b"\x40\x93\x4a\x45\x6d\x5c\xfa\xad", 1234.5678), (b"D", b"\x01\x00\x00\x00\x0f", 1.5),
        (b"S", b"1500", 1500), (b"S", b" +2.5 ", 2.5), (b"S", b"1.5e3", 1500), (b"x", b"7", 7),
    ],
)  # fmt: skip
def test_a_delay_is_read_in_every_type_and_never_rounded_down(kind: bytes, value: bytes, milliseconds: float) -> None:
    header = table_header(b"x-delay", kind, value)
    exact = Decimal(milliseconds) * 1000
    delay = due(header)
    assert isinstance(delay, timedelta)
    microseconds = delay // timedelta(microseconds=1)
    assert exact <= microseconds < exact + 1
    [field] = ContentHeader(header).headers()
    changed = ContentHeader(header)
    changed.replace(field, *negate(field))
    [after] = ContentHeader(changed.changed()).headers()
    assert read_number(after) == -(read_number(field) or 0)
    assert due(changed.changed()) is None, "it is not delayed twice"


NO_DELAY = [0, -1, "", "soon", "1_000", "nan", True, None, [1], {"a": 1}, math.inf, math.nan]
NO_MOMENT = [0, -5, "2026-11-19T13:00:00", "1850-01-01T00:00:00Z", "tomorrow", False]


@pytest.mark.parametrize(
    "header",
    [
        properties(),
        *(properties(headers={"x-delay": value}) for value in NO_DELAY),
        *(properties(headers={"x-deliver-at": value}) for value in NO_MOMENT),
        properties(headers={"x-delay": -5, "x-deliver-at": 4 * 10**12}),
    ],
)
def test_what_names_no_moment_is_passed_on_at_once_and_unchanged(header: bytes) -> None:
    assert due(header) is None
    found = read_delayed(a_message(header), "delay.", NOW, 1000)
    assert isinstance(found, DelayedMessage)
    assert found.header == header


def test_a_moment_is_read_as_milliseconds_a_timestamp_or_text() -> None:
    moment = datetime(2036, 1, 1, tzinfo=UTC)
    milliseconds = int(moment.timestamp() * 1000)
    for value in (milliseconds, str(milliseconds), moment, "2036-01-01T01:00:00+01:00"):
        header = properties(headers={"x-deliver-at": value})
        assert due(header) == moment
        found = read_delayed(a_message(header), "delay.", NOW, 1000)
        assert isinstance(found, DelayedMessage)
        assert found.header == header


def test_ten_years_are_fine_and_three_hundred_are_not() -> None:
    assert due(properties(headers={"x-delay": 3650 * DAY_MS})) == timedelta(days=3650)
    for headers in (
        {"x-delay": 300 * 365 * DAY_MS}, {"x-delay": 1e30}, {"x-delay": "1e999999"}, {"x-delay": 2**63 - 1},
        {"x-deliver-at": 10**16}, {"x-deliver-at": "1e400"}, {"x-deliver-at": "2500-01-01T00:00:00Z"},
        {"x-deliver-at": "2199-12-31T23:59:59-01:00"},
    ):  # fmt: skip
        [field] = headers
        assert read(headers) == RefusedDelayed(f"{field}: is later than the year 2199")
    assert due(table_header(b"x-delay", b"S", b"1e-999999")) == timedelta(microseconds=1)


def test_the_target_is_named_by_the_exchange_alone() -> None:
    header = properties(headers={"x-delay": 1, "x-exchange": "payments"})
    for exchange, target in (("delay.orders", "orders"), ("delay.", ""), ("delay.delay.x", "delay.x")):
        found = read_delayed(a_message(header, exchange), "delay.", NOW, 1000)
        assert isinstance(found, DelayedMessage)
        assert found.exchange == target
    for exchange in ("", "orders", "my.delay.orders", "delay"):
        assert isinstance(read_delayed(a_message(header, exchange), "delay.", NOW, 1000), RefusedDelayed)


def test_a_direct_reply_is_not_held_to_be_sent_later() -> None:
    address = "amq.rabbitmq.reply-to.made-up"
    copied, plain = properties(headers={"CC": ["q", address], "x-delay": 1}), properties(headers={"x-delay": 1})
    for header, key, part in ((plain, address, "routing_key"), (copied, "q", "CC")):
        message = replace(a_message(header, "delay."), routing_key=key, routing_key_bytes=key.encode())
        refused = read_delayed(message, "delay.", NOW, 1000)
        assert refused == RefusedDelayed(f"{part}: a direct reply cannot be held; have replies sent to a queue")
        # For any other exchange it is a routing key like others.
        assert isinstance(read_delayed(replace(message, exchange="delay.x"), "delay.", NOW, 1000), DelayedMessage)


def test_what_cannot_be_held_is_refused_with_the_part_at_fault() -> None:
    assert read_delayed(a_message(properties(), body=b"x" * 1001), "delay.", NOW, 1000) == RefusedDelayed(
        "body: has 1001 bytes, the limit is 1000"
    )
    long = read({"a": "x" * 125_000})
    assert isinstance(long, RefusedDelayed)
    assert long.error.startswith("properties: have 125")
    for name in ("", "x" * 201, "a\0b", 7, ["a"]):
        refused = read({"duebell-id": name})
        assert isinstance(refused, RefusedDelayed)
        assert refused.error.startswith("duebell-id: must be a text")
    named = read({"duebell-id": "reminder-7"}, message_id="m")
    assert isinstance(named, DelayedMessage)
    assert (named.name, named.message_id) == ("reminder-7", "m")


def test_bytes_that_no_library_could_read_are_passed_on() -> None:
    header = short_text_table({"message_id": b"\xff\xfe", "type": b"\xff"}, b"x-delay", b"I", b"\x00\x00\x00\x05")
    found = read_delayed(a_message(header), "delay.", NOW, 1000)
    assert isinstance(found, DelayedMessage)
    assert found.message_id is None
    assert found.header == header.replace(b"\x00\x00\x00\x05", b"\xff\xff\xff\xfb")


@given(st.binary(max_size=60))
def test_hostile_bytes_are_refused_or_kept(header: bytes) -> None:
    found = read_delayed(a_message(header), "delay.", NOW, 1000)
    assert isinstance(found, DelayedMessage | RefusedDelayed)
    try:
        ContentHeader(header)
    except Unsplittable:
        assert isinstance(found, RefusedDelayed)


def test_an_expiry_before_the_message_was_taken_is_undone() -> None:
    death = {
        "count": 1, "reason": "expired", "queue": "scheduler.delayed", "exchange": "delay.orders",
        "routing-keys": ["key"], "original-expiration": "100",
    }  # fmt: skip
    sent = {"headers": {"x-delay": 5}, "priority": 1}
    dead = {"x-death": [death], "x-first-death-exchange": "delay.orders", "x-last-death-queue": "q", **sent["headers"]}  # type: ignore[dict-item]
    message = a_message(properties(headers=dead, priority=1, message_id="m"), "schedule.delayed-expired", headers=dead)
    restored = undo_expiry(message, "scheduler.delayed")
    assert isinstance(restored, IncomingMessage)
    assert restored.exchange == "delay.orders"
    assert restored.header == properties(**sent, message_id="m", expiration="100")
    given_up = {"x-death": [{**death, "reason": "delivery_limit"}]}
    refused = undo_expiry(a_message(properties(headers=given_up), headers=given_up), "scheduler.delayed")
    assert refused == RefusedDelayed("exchange: the message was given up by the broker: delivery_limit")


def test_the_counts_of_deliveries_to_consumers_are_taken_out_of_a_message_that_came_again() -> None:
    sent = {"a": 1, "x-delay": 5}
    counted = properties(headers={**sent, "x-acquired-count": 2, "x-delivery-count": 1}, message_id="m")
    assert undo_redelivery(a_message(counted, redelivered=True)).header == properties(headers=sent, message_id="m")
    # They are its sender's own.
    assert undo_redelivery(a_message(counted)).header == counted
    assert undo_redelivery(a_message(b"\xff", redelivered=True)).header == b"\xff"
