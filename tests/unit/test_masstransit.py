"""What MassTransit's envelopes come to, and what is said of those that cannot be read."""

import json
import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis.strategies import DataObject, data, sampled_from
from msgspec.structs import replace

from consumer.commands.delayed import DelayedMessage, RefusedDelayed
from consumer.commands.masstransit import in_masstransits_words, read_masstransit, read_occurrence
from consumer.commands.quartz_cron import as_rrule
from consumer.delayed import cut_by_name
from shared.amqp.connection import virtual_host_of
from shared.amqp.message import IncomingMessage
from shared.contract.names import MASSTRANSIT_TOPIC
from shared.recurrence import RuleSpec, compile_rule, occurrences
from tests.support.delayed import properties
from tests.support.masstransit_envelopes import CONTENT_TYPE, ENVELOPES, an_envelope
from tests.unit.test_any_command import JSON_VALUES

NOW = datetime(2026, 7, 10, 9, 5, tzinfo=UTC)
TOKEN = "0c3a0000-ac19-0242-2a9a-08dd1a2b3c4d"


def a_message(body: bytes, **fields: Any) -> IncomingMessage:
    plain = IncomingMessage(1, body, "e", "k", None, None, None, None, None, None, None, None, None, {}, None)
    return replace(plain, **fields)


def read(envelope: object, virtual_host: str = "/", **changes: Any) -> Any:
    body = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
    header = properties(content_type=CONTENT_TYPE, message_id="m", delivery_mode=2)
    message = a_message(body, **{"content_type": CONTENT_TYPE, "header": header, "message_id": "m", **changes})
    return read_masstransit(message, virtual_host, NOW, 1024 * 1024)


def error_of(envelope: object, **changes: Any) -> str:
    found = read(envelope, **changes)
    assert isinstance(found, RefusedDelayed), found
    return found.error


def test_a_scheduled_message_becomes_an_envelope_for_its_destination() -> None:
    asked = an_envelope("schedule_message")
    found = read(asked)
    assert isinstance(found, DelayedMessage)
    assert (found.exchange, found.routing_key, found.name) == ("notification-service", b"", TOKEN)
    assert found.due_at == datetime(2026, 7, 10, 9, 30, 0, 765432, tzinfo=UTC)
    assert found.header == properties(content_type=CONTENT_TYPE, message_id="m", delivery_mode=2)
    assert json.loads(found.body) == {
        **asked,
        "messageType": ["urn:message:Shop.Contracts:SendNotification"],
        "message": asked["message"]["payload"],
        "destinationAddress": "rabbitmq://broker.example/notification-service",
        "headers": {"tenant": "acme", "MT-Scheduling-TokenId": TOKEN},
        "sentTime": "2026-07-10T09:30:00.765432Z",
    }


def test_numbers_of_a_payload_pass_as_they_were_written() -> None:
    text = json.dumps(an_envelope("schedule_message")).replace('"count": 3', '"count": 12345678901234567890.10')
    assert b'"count": 12345678901234567890.10' in read(text.encode()).body


@pytest.mark.parametrize(
    ("address", "virtual_host", "exchange"),
    [
        ("rabbitmq://broker/orders", "/", "orders"),
        ("rabbitmq://broker:5672/shop/orders?bind=true&queue=orders", "shop", "orders"),
        ("amqps://broker/a%2Fb/Shop.Contracts:OrderPlaced", "a/b", "Shop.Contracts:OrderPlaced"),
        ("queue:orders", "shop", "orders"),
        ("exchange:orders?type=topic", "shop", "orders"),
    ],
)
def test_a_destination_is_the_exchange_of_that_name(address: str, virtual_host: str, exchange: str) -> None:
    assert read(an_envelope("schedule_message", destination=address), virtual_host).exchange == exchange


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"destination": "rabbitmq://broker/other/orders"}, "message.destination: is in the virtual host 'other'"),
        ({"destination": "loopback://localhost/orders"}, "message.destination: 'loopback://"),
        ({"destination": "rabbitmq://broker/"}, "message.destination: 'rabbitmq://broker/' does not name"),
        ({"destination": "queue:a b"}, "message.destination: 'queue:a b' does not name"),
        ({"destination": 7}, "message.destination: must be an address"),
        ({"destination": None}, "message.destination: is missing"),
        ({"correlationId": "tea"}, "message.correlationId: must be a UUID"),
        ({"scheduledTime": None}, "message.scheduledTime: is missing"),
        ({"scheduledTime": "tomorrow"}, "message.scheduledTime: is not a date and time"),
        ({"payloadType": "urn"}, "message.payloadType: must be a list of texts"),
        ({"payload": None}, "message.payload: is missing"),
    ],
)
def test_an_error_names_the_field(changes: dict[str, Any], error: str) -> None:
    assert error_of(an_envelope("schedule_message", **changes)).startswith(error)


def test_what_is_no_envelope_of_a_scheduler_is_refused() -> None:
    good = an_envelope("schedule_message")
    assert error_of(b"no json").startswith("body: must be a JSON object")
    assert error_of(good, content_type="application/xml").startswith("content_type: must be")
    assert error_of({**good, "messageType": ["urn:message:Shop:Order"]}).startswith("messageType: none of Sch")
    assert error_of({**good, "message": None}) == "message: is missing"
    assert error_of({**good, "headers": []}).startswith("headers: must be a JSON object")
    assert error_of(b'{"a":' * 100 + b"1" + b"}" * 100).startswith("a: is nested deeper")
    assert error_of(b"x" * (1024 * 1024 + 1)).startswith("body: has 1048577 bytes")


def test_a_recurring_message_becomes_a_job_and_its_events_become_envelopes_with_ids_of_their_own() -> None:
    found = read(an_envelope("schedule_recurring_message"))
    assert isinstance(found, IncomingMessage)
    request = json.loads(found.body)
    payload = request.pop("payload")
    assert (found.type, request) == (
        "ScheduleRequest",
        {
            "id": "masstransit:Shop:PollExternalSystem",
            "rrule": "FREQ=MINUTELY;BYSECOND=0",
            "start_at": "2026-07-10T09:00:00.123456Z",
            "timezone": "Europe/Berlin",
            "topic": MASSTRANSIT_TOPIC,
            "misfire": "latest",
            "revision": 1783674000123456,
        },
    )
    first, copy, second = (sent_for(payload, key) for key in ("event-1", "event-1", "event-2"))
    assert first == copy
    assert first.exchange == "poller"
    envelope = json.loads(first.body)
    assert envelope["messageId"] == first.message_id != second.message_id
    assert UUID(first.message_id)
    assert envelope["messageType"] == ["urn:message:Shop.Contracts:PollExternalSystem"]
    assert (envelope["message"], envelope["sentTime"]) == ({}, "2026-07-10T09:06:00Z")


def sent_for(payload: object, key: str) -> DelayedMessage:
    due = {"id": "i", "payload": payload, "idempotency_key": key, "due_at": "2026-07-10T09:06:00Z"}
    found = read_occurrence(a_message(json.dumps(due).encode()))
    assert isinstance(found, DelayedMessage)
    assert found.header == properties(content_type=CONTENT_TYPE, delivery_mode=2, message_id=found.message_id)
    return found


@pytest.mark.parametrize(
    ("name", "kind", "content"),
    [
        ("cancel_scheduled_message", "ScheduleCancel", {"id": TOKEN}),
        (
            "cancel_scheduled_recurring_message",
            "ScheduleCancel",
            {"id": "masstransit:Shop:PollExternalSystem", "revision": 1783677600000000},
        ),
    ],
)
def test_a_cancel_becomes_a_command(name: str, kind: str, content: dict[str, Any]) -> None:
    found = read(an_envelope(name))
    assert isinstance(found, IncomingMessage)
    assert (found.type, json.loads(found.body)) == (kind, content)


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        ({"cronExpression": "* * * * *"}, "message.schedule.cronExpression: expected the six fields"),
        ({"cronExpression": "0 0 99 * * ?"}, "message.schedule.cronExpression: hour: '99' is not between"),
        ({"misfirePolicy": "Never"}, "message.schedule.misfirePolicy: 'Never' is none of"),
        ({"scheduleId": None}, "message.schedule.scheduleId: is missing"),
        ({"endTime": "soon"}, "message.schedule.endTime: is not a date"),
    ],
)
def test_an_error_in_a_schedule_names_the_field(schedule: dict[str, Any], error: str) -> None:
    assert error_of(an_envelope("schedule_recurring_message", schedule=schedule)).startswith(error)


def test_what_is_wrong_with_a_request_is_said_in_the_names_of_masstransit() -> None:
    said = in_masstransits_words("timezone: 'W. Europe Standard Time' is not an IANA time zone")
    assert said.startswith("message.schedule.timeZoneId: 'W. Europe")


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("0 0/20 * 1/1 * ? *", ["07-10T09:00:00", "07-10T09:20:00", "07-10T09:40:00"]),
        ("15,45 30 10 * * ?", ["07-10T10:30:15", "07-10T10:30:45", "07-11T10:30:15"]),
        ("0 0 12 ? * 2-6", ["07-10T12:00:00", "07-13T12:00:00", "07-14T12:00:00"]),  # Monday to Friday
        ("0 0 12 ? * FRI-MON", ["07-10T12:00:00", "07-11T12:00:00", "07-12T12:00:00"]),
        ("0 0 12 L * ?", ["07-31T12:00:00", "08-31T12:00:00", "09-30T12:00:00"]),
        ("0 0 12 L-2 * ?", ["07-29T12:00:00", "08-29T12:00:00", "09-28T12:00:00"]),
        ("0 0 12 ? * 6L", ["07-31T12:00:00", "08-28T12:00:00", "09-25T12:00:00"]),  # the last Friday
        ("0 0 12 ? JAN,AUG FRI#2", ["08-14T12:00:00", "01-08T12:00:00", "08-13T12:00:00"]),
        ("*/30 * 22-2 * * ?", ["07-10T22:00:00", "07-10T22:00:30", "07-10T22:01:00"]),
    ],
)
def test_an_expression_of_quartz_rings_when_quartz_says(expression: str, first: list[str]) -> None:
    spec = RuleSpec(start_at="2026-07-10T09:00:00", timezone="UTC", rrule=as_rrule(expression))
    found = occurrences(compile_rule(spec), datetime(2026, 7, 10, 8, 59, tzinfo=UTC), len(first))
    assert [f"{at:%m-%dT%H:%M:%S}" for at in found] == first


@given(data())
def test_any_value_in_any_field_is_read_or_refused_with_the_name_of_a_field(given_data: DataObject) -> None:
    envelope = an_envelope(given_data.draw(sampled_from(sorted(each.stem for each in ENVELOPES.glob("*.json")))))
    part = given_data.draw(sampled_from([envelope, envelope["message"], envelope["message"].get("schedule", envelope)]))
    part[given_data.draw(sampled_from(sorted(part)))] = given_data.draw(JSON_VALUES)
    found = read(envelope)
    if isinstance(found, RefusedDelayed):
        assert re.match(r"[A-Za-z_.]+: .", found.error), found.error


def test_commands_and_messages_keep_their_order() -> None:
    message, named = (DelayedMessage("e", b"", b"", b"", name=name) for name in (None, "n"))
    command = a_message(b"")
    batch: list[DelayedMessage | IncomingMessage]
    batch = [message, message, command, command, message, named, command, named, named]
    assert list(cut_by_name(dict(enumerate(batch)))) == [[0, 1], [2, 3], [4], [5], [6], [7], [8]]


@pytest.mark.parametrize(
    ("url", "virtual_host"),
    [("amqp://u:p@h", "/"), ("amqp://u:p@h/", "/"), ("amqp://h//", "/"), ("amqp://a,b:1/a%2Fb?x=1", "a/b")],
)
def test_the_virtual_host_is_the_path_of_the_address(url: str, virtual_host: str) -> None:
    assert virtual_host_of(url) == virtual_host


def test_a_rule_ends_with_its_schedule() -> None:
    assert as_rrule("0 0 12 * * ?", datetime(2026, 7, 11, 13, tzinfo=UTC)).endswith(";UNTIL=20260711T130000Z")


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("0 0 12 1 * MON", "day of month: cannot be given together"),
        ("0 0 12 15W * ?", "day of month: '15W' is not understood"),
        ("0 0 12 * FOO ?", "month: 'FOO' is not between 1 and 12"),
        ("0 0/0 12 * * ?", "minute: the step of '0/0' is 0"),
        ("0 0 12 * * ? 2030", "year: '2030' is not understood"),
        ("0 0 12 ? * 0", "day of week: '0' is not between 1 and 7"),
    ],
)
def test_an_expression_that_cannot_be_read_names_its_field(expression: str, error: str) -> None:
    with pytest.raises(ValueError, match=f"^{error}"):
        as_rrule(expression)
