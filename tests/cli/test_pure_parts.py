"""The pure functions of the command line."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.differences import Change, plan_changes
from cli.errors import BadUsage, Failure
from cli.kept_queue import choose
from cli.preview import looks_like_cron
from cli.schedule_file import Wanted
from cli.time_arguments import parse_duration, parse_moment
from consumer.commands.parse import RawCommand, read_command
from consumer.commands.schedule import Schedule
from shared.amqp.message import IncomingMessage
from shared.contract.job_status import JobStatus
from shared.contract.messages import REQUEST_TYPE
from shared.contract.names import Names
from shared.kept.parked import PARKED, Parked
from shared.kept.queue import Found
from shared.kept.unrouted import Unrouted
from shared.reading.stored_requests import StoredRequest
from shared.recurrence import RuleSpec
from shared.recurrence.marked import marked_occurrences

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)
NAMES = Names("x.")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800), ("0.5s", 0.5), ("1w", 604_800)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "10 m", "-5m", "1h30", "1y"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


def test_moments_are_instants_or_distances_from_now() -> None:
    assert parse_moment("now", NOW) == NOW
    assert parse_moment("+2h", NOW) == NOW + timedelta(hours=2)
    assert parse_moment("-30m", NOW) == NOW - timedelta(minutes=30)
    assert parse_moment("2030-06-01T14:00:00+02:00", NOW) == NOW
    with pytest.raises(ValueError, match="needs an offset"):
        parse_moment("2030-06-01T14:00:00", NOW)
    with pytest.raises(ValueError, match="is not an instant"):
        parse_moment("tomorrow", NOW)


@pytest.mark.parametrize("rule", ["0 9 * * 1-5", "@daily", "*/5 * * * *"])
def test_cron_is_told_from_an_rrule(rule: str) -> None:
    assert looks_like_cron(rule)
    assert not looks_like_cron("FREQ=DAILY")
    assert not looks_like_cron("RRULE:FREQ=DAILY")


def notes(rule: RuleSpec, count: int) -> list[str | None]:
    return [one.note for one in marked_occurrences(rule, count)]


def test_a_time_that_the_clocks_skip_is_marked_as_moved() -> None:
    nightly = RuleSpec("2027-03-13T00:00:00", "America/New_York", cron="30 2 * * *")
    assert notes(nightly, 3) == [None, "moved forward: the clocks skip its time on this day", None]


def test_a_time_that_exists_is_not_marked_as_moved() -> None:
    """Half past three exists on the day on which half past two does not."""
    nightly = RuleSpec("2027-03-13T00:00:00", "America/New_York", cron="30 3 * * *")
    assert notes(nightly, 3) == [None, "the clocks have changed: -0400", None]


def test_a_time_that_comes_twice_says_which_one_it_is() -> None:
    hourly = RuleSpec("2026-10-25T01:00:00", "Europe/Berlin", rrule="FREQ=HOURLY")
    assert [note and note.rsplit(" ", 1)[1] for note in notes(hourly, 4)] == [None, "first", "second", None]


def received(**fields: Any) -> IncomingMessage:
    plain: dict[str, Any] = dict.fromkeys(IncomingMessage.__struct_fields__)
    return IncomingMessage(**{**plain, "tag": 1, "body": b"{}", "headers": {}, "message_id": "abc", **fields})


def test_a_command_goes_back_to_its_exchange_without_our_headers() -> None:
    headers = {
        "duebell-parked-by": "consumer",
        "duebell-exchange": "x.schedule.commands",
        "duebell-routing-key": "schedule.request",
        "duebell-reason": "id: is missing",
        "mine": 1,
    }
    parked = received(exchange=NAMES.parking, headers=headers, type="ScheduleRequest", body=b"[]")
    back = Parked(parked).original_message(NAMES)
    assert (back.exchange, back.routing_key) == ("x.schedule.commands", "schedule.request")
    assert back.headers == {"mine": 1}
    assert (back.body, back.type) == (b"[]", "ScheduleRequest")
    assert back.mandatory


def test_an_event_goes_back_to_the_delivery_queue_alone() -> None:
    headers = {
        "duebell-parked-by": "delivery",
        "duebell-exchange": "x.schedule.events",
        "duebell-routing-key": "due.webhook.a",
    }
    back = Parked(received(exchange=NAMES.parking, headers=headers)).original_message(NAMES)
    assert (back.exchange, back.routing_key) == ("", "x.scheduler.deliveries")


def test_what_the_broker_gave_up_goes_back_by_its_own_record() -> None:
    death = {
        "queue": "x.scheduler.inbox",
        "exchange": "x.schedule.commands",
        "routing-keys": ["schedule.cancel"],
        "reason": "expired",
    }
    parked = Parked(received(headers={"x-death": [death]}, message_id=None))
    assert parked.reason == "given up by the broker: expired"
    back = parked.original_message(NAMES)
    assert (back.exchange, back.routing_key, back.headers) == ("x.schedule.commands", "schedule.cancel", {})


@pytest.mark.parametrize("exchange", ["x.schedule.events", "", "any"])
def test_a_sender_cannot_make_up_where_a_message_goes_that_the_broker_gave_up(exchange: str) -> None:
    """Up to version 3.13 RabbitMQ believes a sender's x-death, but for the queue and the reason."""
    death = {"queue": "x.scheduler.inbox", "exchange": exchange, "routing-keys": ["due.webhook.a"], "reason": "expired"}
    said = {"duebell-exchange": exchange, "duebell-routing-key": "due.webhook.a", "duebell-parked-by": "delivery"}
    back = Parked(received(exchange="", headers={"x-death": [death], **said})).original_message(NAMES)
    assert back.exchange == "x.schedule.commands"
    assert Parked(received(exchange="", headers={"x-death": "?"})).reason == "given up by the broker: unknown"


@pytest.mark.parametrize("came_by", ["x.delay.orders", "x.schedule.delayed-expired"])
def test_a_delayed_message_goes_back_to_its_delay_exchange_under_its_name_and_message_id(came_by: str) -> None:
    headers = {
        "duebell-exchange": came_by, "duebell-routing-key": "k", "duebell-message-id": "m", "duebell-id": "n",
        "x-death": [{"queue": "x.scheduler.delayed", "exchange": "x.delay.orders"}], "x-delay": 5,
    }  # fmt: skip
    back = Parked(received(exchange=NAMES.parking, headers=headers, message_id="copy")).original_message(NAMES)
    assert (back.exchange, back.routing_key, back.message_id) == ("x.delay.orders", "k", "m")
    assert back.headers == {"duebell-id": "n", "x-delay": 5}


def test_ids_may_be_cut_short_but_must_be_unmistakable() -> None:
    messages = [Parked(received(message_id=f"batch-{number}")) for number in range(40)]
    found = Found([*messages], all_seen=True)
    ids = [one.id for one in messages]
    assert len(set(ids)) == 40, "although their message_ids begin alike"
    assert choose(found, PARKED, [ids[3], ids[1][:12]]) == [messages[3], messages[1]]
    assert Parked(received(message_id=None)).id == Parked(received(message_id=None)).id
    with pytest.raises(BadUsage, match="names 40 parked"):
        choose(found, PARKED, [""])
    with pytest.raises(Failure, match="is not among the parked"):
        choose(found, PARKED, ["no such id"])
    with pytest.raises(Failure, match="is not among the oldest 40 of the parked"):
        choose(Found([*messages], all_seen=False), PARKED, ["no such id"])


def test_an_unrouted_event_goes_back_to_the_exchange_of_events_under_its_own_message_id() -> None:
    body = b'{"id": "tea", "due_at": "2030-06-01T12:00:00Z"}'
    headers = {"duebell-routing-key": "due.event.kitchen", "idempotency-key": "k", "traceparent": "t"}
    event = Unrouted(received(headers=headers, body=body, type="ScheduleDue", message_id="k"))
    assert event.summary()["due_at"] == NOW
    assert (event.job, event.routing_key) == ("tea", "due.event.kitchen")
    back = event.original_message(NAMES)
    assert (back.exchange, back.routing_key) == ("x.schedule.events", "due.event.kitchen")
    assert (back.body, back.type, back.message_id) == (body, "ScheduleDue", "k")
    assert back.headers == {"idempotency-key": "k", "traceparent": "t"}
    assert back.mandatory
    assert back.may_be_unrouted


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"id": 7, "due_at": "soon"}', b'{"due_at": 7}'])
def test_an_event_that_was_put_there_by_hand_is_shown_too(body: bytes) -> None:
    summary = Unrouted(received(body=body, routing_key="by.hand")).summary()
    assert (summary["job"], summary["due_at"], summary["routing_key"]) == (None, None, "by.hand")


def test_a_pruned_job_is_cancelled_up_to_the_revision_that_was_listed() -> None:
    [cancel] = plan_changes([], {}, {"old": 7}, NOW).changes
    assert cancel.content == {"id": "old", "revision": 7}, "a higher revision, sent while a person decides, stays"


@pytest.mark.parametrize(
    ("stored", "wanted"), [("1", "true"), ("0", "false"), ("1", "1.0"), ('{"a": [0]}', '{"a": [false]}')]
)
def test_values_that_python_takes_for_equal_and_json_does_not_differ(stored: str, wanted: str) -> None:
    assert [change.fields.keys() for change in _plan(stored, wanted)] == [{"payload"}]
    assert _plan(stored, stored) == []
    assert _plan('{"b": 1, "a": 2}', '{"a": 2,   "b": 1}') == []


def _plan(stored: str, wanted: str) -> list[Change]:
    body = b'{"id": "a", "every_seconds": 60, "payload": %s}'
    one, other = (_schedule(body % payload.encode()) for payload in (stored, wanted))
    assert one.rule is not None
    job = StoredRequest(
        id="a", status=JobStatus.PENDING, revision=1, topic=one.topic, payload=one.payload, webhook=None,
        rule=one.rule.to_json(), misfire=one.misfire, misfire_grace_seconds=one.misfire_grace_seconds, labels=None,
        next_run_at=one.next_run_at, last_due_at=None,
    )  # fmt: skip
    return plan_changes([Wanted({}, other)], {"a": job}, {}, NOW).changes


def _schedule(body: bytes) -> Schedule:
    read = read_command(RawCommand(body, REQUEST_TYPE, ""), NOW, 1000)
    assert isinstance(read, Schedule), read
    return read
