"""Bytes in, a command or reasons out. What is refused, case by case: tests/unit/test_hostile_commands.py."""

import json
from datetime import timedelta
from typing import Any

import pytest

from consumer.commands.parse import Cancel, Command, Pause, Query, RawCommand, Refused, Resume, Trigger, read_command
from consumer.commands.schedule import Schedule, list_upcoming
from shared.contract.fields import format_instant
from tests.support.builders import NOON, a_request, a_rule_request

LIMIT = 256 * 1024


def read(content: Any, **properties: Any) -> Command:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    fields = {"type": None, "routing_key": "schedule.request", **properties}
    return read_command(RawCommand(body, **fields), NOON, LIMIT)


def read_schedule(content: Any, **properties: Any) -> Schedule:
    command = read(content, **properties)
    assert isinstance(command, Schedule), command
    return command


def test_every_wrong_field_is_named_not_only_the_first() -> None:
    command = read({"id": 5, "at": "2030-06-01T12:00:00Z", "topic": "a b", "colour": 1})
    assert isinstance(command, Refused)
    assert {error.split(":")[0] for error in command.errors} == {"id", "topic", "colour"}


def test_the_type_property_decides_and_the_routing_key_when_there_is_none() -> None:
    assert read({"id": "x"}, type="ScheduleCancel", routing_key="schedule.request") == Cancel("x")
    assert read({"id": "x"}, routing_key="schedule.cancel") == Cancel("x")
    assert read({"id": "x"}, routing_key="schedule.pause", user_id="alice") == Pause("x", "alice")
    assert read({"id": "x"}, type="ScheduleResume", routing_key="schedule.pause") == Resume("x")
    assert read({"id": "x", "upcoming": 9}, routing_key="schedule.query", user_id="alice") == Query("x", "alice", 10, 9)
    assert isinstance(read(a_request(), type="ScheduleRequest", routing_key="whatever"), Schedule)


@pytest.mark.parametrize("body", [{"id": ""}, {"id": "x", "history": 51}, b"not json", [], {"id": "x", "colour": 1}])
def test_a_query_that_is_refused_is_not_parked_and_any_other_command_is(body: Any) -> None:
    query, pause = read(body, type="ScheduleQuery"), read(body, type="SchedulePause")
    assert isinstance(query, Refused)
    assert isinstance(pause, Refused)
    assert (query.parked, pause.parked) == (False, True)


@pytest.mark.parametrize(("payload", "kept"), [(b'{"n":  1.50}', '{"n":  1.50}'), (b"null", None), (b"0", "0")])
def test_a_triggers_payload_is_kept_byte_for_byte_and_null_leaves_it_to_the_job(
    payload: bytes, kept: str | None
) -> None:
    body = b'{"id": "x", "trigger_id": "y", "payload": ' + payload + b"}"
    assert read(body, routing_key="schedule.trigger", user_id="alice") == Trigger("x", "y", kept, user="alice")


@pytest.mark.parametrize(
    "payload",
    [
        b'{"a" : 1.50, "b":[1,2 , 3]}',
        b'"\\u0000"',
        b"12345678901234567890123456789",
        b"0.1000000000000000055511151231257827",
        b"1E5",
        b'"\\u00e9 \xc3\xa9"',
        b"null",
        b'{"k": 1, "k": 2}',
        b"[" * 60 + b"]" * 60,
    ],
)
def test_a_payload_is_carried_byte_for_byte(payload: bytes) -> None:
    schedule = read_schedule(b'{"id": "x", "payload": ' + payload + b' , "at": "2030-06-01T12:00:00Z"}')
    assert schedule.payload == payload.decode()


def test_a_payload_under_an_escaped_key_is_the_payload_too() -> None:
    schedule = read_schedule(b'{"id": "x", "pay\\u006coad": [1 ,2], "at": "2030-06-01T12:00:00Z"}')
    assert schedule.payload == "[1 ,2]"


def test_of_two_payloads_the_last_counts() -> None:
    schedule = read_schedule(b'{"id": "x", "payload": 1, "at": "2030-06-01T12:00:00Z", "payload": 2}')
    assert schedule.payload == "2"


def test_a_payload_of_exactly_the_limit_is_taken() -> None:
    assert isinstance(read(a_request(payload="x" * (LIMIT - 2))), Schedule)


@pytest.mark.parametrize(
    ("at", "timezone", "instant"),
    [
        ("2030-06-01T12:00:00Z", None, "2030-06-01T12:00:00Z"),
        ("2030-06-01t12:00:00.25z", None, "2030-06-01T12:00:00.250000Z"),
        ("2030-06-01T12:00:00+02:00", None, "2030-06-01T10:00:00Z"),
        ("2030-06-01T12:00:00+02:00", "America/New_York", "2030-06-01T10:00:00Z"),
        ("2030-06-01T12:00:00", "Europe/Berlin", "2030-06-01T10:00:00Z"),
        ("2030-12-01T12:00:00", "Europe/Berlin", "2030-12-01T11:00:00Z"),
        # In the gap: shifted forward by its length. In the fold: the first time.
        ("2030-03-31T02:30:00", "Europe/Berlin", "2030-03-31T01:30:00Z"),
        ("2030-10-27T02:30:00", "Europe/Berlin", "2030-10-27T00:30:00Z"),
        ("1999-01-01T00:00:00Z", None, "1999-01-01T00:00:00Z"),
    ],
)
def test_at_is_an_instant_or_a_local_time(at: str, timezone: str | None, instant: str) -> None:
    schedule = read_schedule(a_request(at=at, timezone=timezone))
    assert format_instant(schedule.next_run_at) == instant


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("at", {"at": "2030-06-01T24:00:00Z"}),
        ("at", {"at": "2030-06-01T24:00:00", "timezone": "Europe/Berlin"}),
        ("start_at", {"cron": "@daily", "start_at": "2030-06-01T24:00:00Z"}),
        ("rrule", {"rrule": "DTSTART:20300601T240000Z\nRRULE:FREQ=DAILY"}),
    ],
)
def test_24_00_is_no_time_of_day(field: str, fields: dict[str, Any]) -> None:
    """Newer versions of Python read it as midnight of the next day."""
    refused = read(a_request(**{"at": None, **fields}))
    assert isinstance(refused, Refused)
    assert refused.errors[0].startswith(f"{field}:")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://[::1%25eth0]/", "must name a host of"),
        ("http://[v1.x]/", "must name a host of"),
        ("http://[fe80::1:2:3:4:5:6:7:8]/", "looks like an IP address, and is none"),
        ("http://[127.0.0.1]/", "looks like an IP address, and is none"),
        ("http://256.1.1.1/", "looks like an IP address, and is none"),
        ("http://[::1/", "has a host or a port that cannot be read"),
        ("http://a]b/", "must name a host of"),
        ("http://a,[2001:db8::1]:5433/", "has a host or a port that cannot be read"),
        ("http://example.com:65536/", "has a host or a port that cannot be read"),
        ("http://user:pass@example.com/", "must not contain a user name"),
        ("http://:80/", "must start with http"),
    ],
)
def test_what_is_no_host_is_refused_for_the_same_reason_by_every_version_of_python(url: str, reason: str) -> None:
    refused = read(a_request(webhook={"url": url}))
    assert isinstance(refused, Refused)
    assert refused.errors[0].startswith("webhook.url: ")
    assert reason in refused.errors[0]


def test_a_rule_without_start_starts_when_the_request_was_made() -> None:
    made_at = NOON - timedelta(minutes=3)
    schedule = read_schedule({"id": "x", "rrule": "FREQ=MINUTELY"}, timestamp=made_at)
    assert schedule.next_run_at == made_at


def test_a_publisher_with_a_fast_clock_does_not_delay_its_rule() -> None:
    schedule = read_schedule({"id": "x", "rrule": "FREQ=MINUTELY"}, timestamp=NOON + timedelta(hours=1))
    assert schedule.next_run_at == NOON


def test_a_rule_without_start_and_timestamp_starts_now() -> None:
    assert read_schedule({"id": "x", "rrule": "FREQ=MINUTELY"}).next_run_at == NOON


def test_a_start_in_the_past_keeps_its_occurrences() -> None:
    schedule = read_schedule(a_rule_request(start_at="2029-01-01T09:00:00Z"))
    assert format_instant(schedule.next_run_at) == "2029-01-01T09:00:00Z"


def test_a_local_rule_keeps_its_wall_time_over_a_clock_change() -> None:
    schedule = read_schedule(a_rule_request(start_at="2030-03-30T09:00:00", timezone="Europe/Berlin"))
    assert [format_instant(instant) for instant in list_upcoming(schedule)] == [
        "2030-03-30T08:00:00Z",
        "2030-03-31T07:00:00Z",
        "2030-04-01T07:00:00Z",
    ]


def test_upcoming_shows_the_remaining_occurrences_of_a_short_rule() -> None:
    assert len(list_upcoming(read_schedule(a_rule_request(rrule="FREQ=DAILY;COUNT=2")))) == 2
    assert len(list_upcoming(read_schedule(a_request()))) == 1


def test_an_unreadable_property_is_named_as_the_reason() -> None:
    command = read(a_request(), unreadable="timestamp: year 292278994 is out of range")
    assert command == Refused(("timestamp: year 292278994 is out of range",))


def test_a_webhook_is_stored_with_its_defaults() -> None:
    schedule = read_schedule(a_request(webhook={"url": "https://example.com/hook", "secret": "billing"}))
    assert json.loads(schedule.webhook or "") == {
        "url": "https://example.com/hook",
        "headers": {},
        "timeout_seconds": 10.0,
        "max_retries": 3,
        "secret": "billing",
    }


def test_a_timestamp_long_ago_does_not_start_a_rule_there() -> None:
    command = read({"id": "x", "every_seconds": 1}, timestamp=NOON - timedelta(days=31))
    assert isinstance(command, Refused)
    assert command.errors[0].startswith("timestamp:")
    assert isinstance(read(a_request(), timestamp=NOON - timedelta(days=31)), Schedule), "a one-shot has no use for it"


def test_null_counts_as_missing() -> None:
    spelled_out = a_request(
        topic=None, revision=None, misfire=None, webhook=None, rrule=None, misfire_grace_seconds=None
    )
    assert read(spelled_out) == read(a_request())
    assert isinstance(read(a_request(colour=None)), Refused), "but not for fields that do not exist"
