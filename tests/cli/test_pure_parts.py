"""The pure functions of the command line."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.errors import BadUsage, Failure
from cli.parked_queue import Parked, choose
from cli.preview import looks_like_cron, marked_occurrences
from cli.status import what_is_wrong
from cli.time_arguments import parse_duration, parse_moment
from shared.amqp.message import IncomingMessage
from shared.contract.names import Names
from shared.recurrence import RuleSpec

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
    return [one["note"] for one in marked_occurrences(rule, count)]


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
    back = Parked(received(headers=headers, type="ScheduleRequest", body=b"[]")).original_message(NAMES)
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
    back = Parked(received(headers=headers)).original_message(NAMES)
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


def test_ids_may_be_cut_short_but_must_be_unmistakable() -> None:
    found = [Parked(received(message_id=f"batch-{number}")) for number in range(40)]
    ids = [one.id for one in found]
    assert len(set(ids)) == 40, "although their message_ids begin alike"
    assert choose(found, [ids[3], ids[1][:12]]) == [found[3], found[1]]
    assert Parked(received(message_id=None)).id == Parked(received(message_id=None)).id
    with pytest.raises(BadUsage, match="names 40 parked"):
        choose(found, [""])
    with pytest.raises(Failure, match="is not among"):
        choose(found, ["no such id"])


def well() -> dict[str, Any]:
    return {
        "schema": {"version": 3, "needed": 3},
        "services": {"consumer": 1, "producer": 2, "delivery": 1},
        "queues": {"inbox": 10, "deliveries": 0, "parked": 0, "unrouted": 5},
        "jobs": {"oldest_overdue_seconds": 1.0},
        "deliveries": {"oldest_overdue_seconds": 0.0},
    }


def test_a_busy_installation_needs_no_attention() -> None:
    assert what_is_wrong(well()) == []


@pytest.mark.parametrize(
    ("part", "change", "says"),
    [
        ("schema", {"version": 2, "needed": 3}, "shared.migrate"),
        ("services", {"producer": 0}, "no producer is running"),
        ("queues", {"inbox": None, "parked": 0}, "shared.topology"),
        ("queues", {"parked": 3}, "3 parked"),
        ("jobs", {"oldest_overdue_seconds": 61.0}, "jobs are late"),
        ("deliveries", {"oldest_overdue_seconds": 600.0}, "deliveries are late"),
    ],
)
def test_what_needs_attention_is_named(part: str, change: dict[str, Any], says: str) -> None:
    [problem] = what_is_wrong({**well(), part: change})
    assert says in problem
