"""Which day comes next, and where a changed schedule starts. No stores."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID
from zoneinfo import available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.birthdays.changes import Circumstances, changes_between, changes_of_a_new_user
from examples.birthdays.commands import Terms, schedule
from examples.birthdays.occurrences import LocalTime, day_to_restart, next_day
from examples.birthdays.people import Event, StoredUser, User
from shared.recurrence import RuleSpec, compile_rule

NINE = time(9)
ID = UUID(int=1)
ZONES = sorted(name for name in available_timezones() if not name.startswith("localtime"))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def an_event(**overrides: object) -> Event:
    event = Event(ID, "BIRTHDAY", date(1990, 3, 1), 1, date(2026, 3, 1))
    return replace(event, **overrides)  # type: ignore[arg-type]  # whatever a test names


def a_person(**overrides: object) -> User:
    user = User("Ada", "Lovelace", "Europe/Berlin", {"BIRTHDAY": date(1990, 3, 1)})
    return replace(user, **overrides)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("born", "timezone", "now", "day"),
    [
        ("1990-03-01", "UTC", "2026-03-01T08:59:59", "2026-03-01"),
        ("1990-03-01", "UTC", "2026-03-01T09:00:00", "2027-03-01"),
        ("1990-03-01", "Pacific/Auckland", "2026-02-28T19:59", "2026-03-01"),
        ("1990-03-01", "Pacific/Auckland", "2026-02-28T20:00", "2027-03-01"),
        ("1990-03-01", "Pacific/Honolulu", "2026-03-01T18:59", "2026-03-01"),
        ("1990-03-01", "Pacific/Honolulu", "2026-03-02T00:00", "2027-03-01"),
        ("1988-02-29", "UTC", "2026-01-01T00:00", "2026-02-28"),
        ("1988-02-29", "UTC", "2027-12-01T00:00", "2028-02-29"),
        ("1988-02-29", "UTC", "2028-02-28T10:00", "2028-02-29"),
        ("1988-02-29", "UTC", "2028-02-29T10:00", "2029-02-28"),
        ("1990-12-31", "Asia/Tokyo", "2026-12-31T00:00", "2027-12-31"),
        ("0001-01-01", "UTC", "2026-06-01T00:00", "2027-01-01"),
    ],
)
def test_the_next_day(born: str, timezone: str, now: str, day: str) -> None:
    assert next_day("BIRTHDAY", date.fromisoformat(born), LocalTime(timezone, NINE), moment(now)).isoformat() == day


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(
    born=st.dates(date(1900, 1, 1), date(2026, 1, 1)) | st.sampled_from([date(1988, 2, 29), date(2000, 2, 29)]),
    timezone=st.sampled_from(ZONES),
    now=st.datetimes(datetime(2026, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - bounds
    at=st.sampled_from([NINE, time(0), time(2, 30), time(23, 59, 59)]),
)
def test_duebell_reads_the_rule_as_we_do(born: date, timezone: str, now: datetime, at: time) -> None:
    user = a_person(timezone=timezone, dates={"BIRTHDAY": born})
    [event] = changes_of_a_new_user(user, Circumstances(at, now)).begun
    content = schedule(ID, user, event, Terms(at, "http://localhost/", "birthdays")).content
    rule = compile_rule(RuleSpec(rrule=content["rrule"], start_at=content["start_at"], timezone=content["timezone"]))
    ring = rule.first()
    local = LocalTime(timezone, at)
    day = event.starts_on
    for _ in range(5):
        assert ring is not None
        assert ring.at == local.instant_on(day)
        assert ring.at > now
        day = next_day("BIRTHDAY", born, local, ring.at)
        ring = rule.next_after(ring)


BERLIN, NEW_YORK, TOKYO = (LocalTime(zone, NINE) for zone in ("Europe/Berlin", "America/New_York", "Asia/Tokyo"))
THE_DAY, NEXT_YEAR = date(2026, 3, 1), date(2027, 3, 1)
BEFORE, AFTER, MUCH_LATER = moment("2026-03-01T07:00"), moment("2026-03-01T08:30"), moment("2026-03-09T08:30")


@pytest.mark.parametrize(
    ("event", "marked", "after", "now", "day"),
    [
        pytest.param(an_event(), THE_DAY, BERLIN, BEFORE, THE_DAY, id="a new name, before the moment"),
        pytest.param(an_event(), THE_DAY, BERLIN, AFTER, THE_DAY, id="due and not greeted yet: still awaited"),
        pytest.param(an_event(greeted_on=THE_DAY), THE_DAY, BERLIN, AFTER, NEXT_YEAR, id="greeted"),
        pytest.param(an_event(), THE_DAY, BERLIN, MUCH_LATER, NEXT_YEAR, id="awaited no longer"),
        pytest.param(an_event(), THE_DAY, NEW_YORK, AFTER, THE_DAY, id="moved west, not greeted"),
        pytest.param(an_event(greeted_on=THE_DAY), THE_DAY, NEW_YORK, AFTER, NEXT_YEAR, id="moved west, greeted"),
        pytest.param(an_event(), THE_DAY, TOKYO, AFTER, THE_DAY, id="moved east, due and not greeted"),
        pytest.param(an_event(), THE_DAY, TOKYO, BEFORE, NEXT_YEAR, id="moved east before it was due: it has passed"),
        pytest.param(an_event(), date(1990, 5, 1), BERLIN, AFTER, date(2026, 5, 1), id="born on another day"),
        pytest.param(an_event(), date(1990, 2, 28), BERLIN, AFTER, date(2027, 2, 28), id="born a day earlier"),
    ],
)
def test_where_a_changed_schedule_starts(
    event: Event, marked: date, after: LocalTime, now: datetime, day: date
) -> None:
    assert day_to_restart(event, marked, BERLIN, after, now) == day


def test_only_what_means_something_else_is_said_again() -> None:
    user = a_person(dates={"BIRTHDAY": date(1990, 3, 1), "ANNIVERSARY": date(2015, 6, 1)})
    given_ = Circumstances(NINE, BEFORE)
    stored = StoredUser(ID, 4, user, changes_of_a_new_user(user, given_).begun)
    named = changes_between(stored, replace(user, last_name="King"), given_)
    assert [(event.type, event.revision) for event in named.rescheduled] == [("BIRTHDAY", 5)]
    moved = changes_between(stored, replace(user, timezone="Asia/Tokyo"), given_)
    assert [event.type for event in moved.rescheduled] == ["ANNIVERSARY", "BIRTHDAY"]
    alone = changes_between(stored, replace(user, dates={"BIRTHDAY": date(1990, 3, 1)}), given_)
    assert (alone.begun, alone.rescheduled) == ((), ())
    assert [event.type for event in alone.ended] == ["ANNIVERSARY"]


def test_a_place_where_nine_does_not_come_is_greeted_an_hour_later() -> None:
    """Nowhere do clocks jump at nine; at half past two, they do."""
    local = LocalTime("America/New_York", time(2, 30))
    assert local.instant_on(date(2026, 3, 8)) == moment("2026-03-08T07:30")
    assert local.instant_on(date(2026, 3, 8)) - local.instant_on(date(2026, 3, 7)) == timedelta(days=1)
