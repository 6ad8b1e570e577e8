"""Reading a ScheduleDue, and refusing what is none."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from delivery.events import NewDelivery, Unreadable, _read_completely, _read_fast, read_due
from producer.decisions.due_event import due_event
from shared.amqp.message import IncomingMessage
from shared.contract.json_depth import too_deep_field
from shared.contract.names import Names
from tests.hostile.events import load
from tests.hostile.reading import received as received_as
from tests.support.builders import a_due_job
from tests.support.due_events import a_due


def received(body: bytes, type: str | None = "ScheduleDue", unreadable: str | None = None) -> IncomingMessage:  # noqa: A002
    return IncomingMessage(
        tag=1,
        body=body,
        exchange="schedule.events",
        routing_key="due.webhook.hooks",
        type=type,
        content_type="application/json",
        content_encoding=None,
        priority=None,
        message_id=None,
        app_id=None,
        correlation_id=None,
        reply_to=None,
        timestamp=None,
        headers={},
        unreadable=unreadable,
    )


def read(**overrides: Any) -> NewDelivery | Unreadable:
    return read_due(received(json.dumps(a_due("tea", "https://example.com/hook", **overrides)).encode()))


def test_a_due_event_becomes_a_delivery() -> None:
    new = read(webhook={"headers": {"X-A": "1"}, "timeout_seconds": 2.5, "max_retries": 7, "secret": "billing"})
    assert isinstance(new, NewDelivery)
    assert (new.job_id, new.topic, new.sequence) == ("tea", "hooks", 1)
    assert (new.url, new.host) == ("https://example.com/hook", "example.com:443")
    assert (new.headers, new.timeout_seconds, new.max_retries, new.secret) == ('{"X-A":"1"}', 2.5, 7, "billing")


def test_the_payload_is_cut_out_byte_for_byte() -> None:
    payload = '{"a": 1.10,  "b":1e40, "c": 123456789012345678901, "d": "\\u0000\\u00e9é"}'
    body = json.dumps(a_due("tea", "https://example.com/", payload="HERE")).replace('"HERE"', payload)
    new = read_due(received(body.encode()))
    assert isinstance(new, NewDelivery)
    assert new.payload == payload


def test_fields_of_a_newer_producer_are_ignored() -> None:
    assert isinstance(read(colour="blue", webhook={"colour": "blue"}), NewDelivery)


def test_a_missing_type_is_no_obstacle() -> None:
    body = json.dumps(a_due("tea", "https://example.com/")).encode()
    assert isinstance(read_due(received(body, type=None)), NewDelivery)


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": "x" * 201}, "id"),
        ({"id": "a\0b"}, "id"),
        ({"topic": "with space"}, "topic"),
        ({"sequence": 0}, "sequence"),
        ({"sequence": 2**63}, "sequence"),
        ({"due_at": None}, "due_at"),
        ({"fired_at": "2026-07-10T09:00:00"}, "fired_at"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "a\r\nX-Evil: 1"}, "idempotency_key"),
        ({"webhook": {"url": "ftp://example.com/"}}, "webhook.url"),
        ({"webhook": {"url": "http://u:p@example.com/"}}, "webhook.url"),
        ({"webhook": {"headers": {"Host": "x"}}}, "webhook.headers"),
        ({"webhook": {"headers": {"X-A": "a\r\nX-B: c"}}}, "webhook.headers"),
        ({"webhook": {"timeout_seconds": 1000}}, "webhook.timeout_seconds"),
        ({"webhook": {"max_retries": 21}}, "webhook.max_retries"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(overrides: dict[str, Any], field: str) -> None:
    if "due_at" in overrides:
        content = a_due("tea", "https://example.com/") | overrides
        result = read_due(received(json.dumps(content).encode()))
    else:
        result = read(**overrides)
    assert isinstance(result, Unreadable)
    assert result.errors[0].startswith(f"{field}: ")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"id": NaN}', b"[" * 5000])
def test_what_is_no_event_is_unreadable(body: bytes) -> None:
    assert isinstance(read_due(received(body)), Unreadable)


def test_an_event_without_a_webhook_is_not_for_us() -> None:
    content = a_due("tea", "https://example.com/")
    del content["webhook"]
    result = read_due(received(json.dumps(content).encode()))
    assert isinstance(result, Unreadable)
    assert result.errors[0].startswith("webhook: ")


def test_another_type_and_a_broken_property_are_named() -> None:
    body = json.dumps(a_due("tea", "https://example.com/")).encode()
    wrong_type = read_due(received(body, type="ScheduleRequest"))
    assert wrong_type == Unreadable(("type: 'ScheduleRequest' is not ScheduleDue",))
    assert read_due(received(body, unreadable="timestamp: year out of range")) == Unreadable(
        ("timestamp: year out of range",)
    )


@pytest.mark.parametrize("field", ["due_at", "fired_at"])
@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2200-01-01T00:00:00Z"])
def test_an_instant_out_of_range_is_unreadable(field: str, instant: str) -> None:
    event = {**a_due("tea", "https://example.com/"), field: instant}
    unreadable = read_due(received(json.dumps(event).encode()))
    assert isinstance(unreadable, Unreadable)
    assert unreadable.errors[0].startswith(f"{field}:")


@pytest.mark.parametrize("depth", [1, 64, 65, 980, 1000, 1023, 5000])
def test_a_payload_nested_deeper_than_64_levels_is_unreadable(depth: int) -> None:
    body = json.dumps(a_due("tea", "https://example.com/", payload="HERE")).replace('"HERE"', "[" * depth + "]" * depth)
    read = read_due(received(body.encode()))
    if depth <= 64:
        assert isinstance(read, NewDelivery)
    else:
        assert read == Unreadable(("payload: is nested deeper than 64 levels",))


MOMENTS = (
    "2026-07-10T09:00:00Z",
    "2026-07-10T09:00:00.1234567+02:00",
    "2026-07-10t09:00:00.999999999z",
    "2026-07-10 09:00:00Z",
    "2026-07-10T09:00Z",
    "2026-12-31T23:59:60Z",
    "1899-12-31T23:30:00-01:00",
    "2200-01-01T00:30:00+01:00",
    1783674000,
)


def test_the_quick_way_of_reading_gives_what_the_careful_one_gives() -> None:
    """Or nothing, and then the careful one has the last word."""
    messages = [received_as(case) for case in load()]
    event = a_due("tea", "https://example.com/")
    messages += [received(json.dumps({**event, "due_at": moment}).encode()) for moment in MOMENTS]
    messages = [message for message in messages if too_deep_field(message.body) is None]
    read_quickly = 0
    for message in messages:
        try:
            plain = _read_fast(message)
        except (ValueError, msgspec.MsgspecError):
            continue
        read_quickly += 1
        assert plain == _read_completely(message), message.body
    assert read_quickly > 20


def test_what_our_own_producer_writes_is_read_quickly() -> None:
    job = a_due_job(webhook='{"url": "https://example.com/hook"}')
    event = due_event(job, job.occurrence, 1, datetime(2026, 7, 10, 9, 0, 1, 5000, tzinfo=UTC), Names())
    assert _read_fast(received(event.body)).host == "example.com:443"
