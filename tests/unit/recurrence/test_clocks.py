"""The spans of a zone's clock, against every zone there is; and weeks, against their definition."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.recurrence import resolve_local
from shared.recurrence.days import days_of_year
from shared.recurrence.parts import DayParts
from shared.recurrence.zones import Change, Fold, Gap, changes_in, spans_in, year_begins
from tests.unit.recurrence.reading import list_times
from tests.unit.recurrence.rules_at_random import CHANGES, repeatable


def test_the_changes_of_a_year_are_found_to_the_second() -> None:
    assert changes_in(ZoneInfo("America/New_York"), 2024) == (
        Change(int(datetime(2024, 3, 10, 7, tzinfo=UTC).timestamp()), -18000, -14400),
        Change(int(datetime(2024, 11, 3, 6, tzinfo=UTC).timestamp()), -14400, -18000),
    )
    assert changes_in(ZoneInfo("Pacific/Apia"), 2011)[-1] == Change(
        int(datetime(2011, 12, 30, 10, tzinfo=UTC).timestamp()), -36000, 50400
    )
    assert changes_in(ZoneInfo("UTC"), 2024) == ()


@pytest.mark.parametrize("year", [2000, 2024, 2040])
def test_no_zone_changes_so_often_that_a_change_is_missed(year: int) -> None:
    """Probing every six hours instead of every other day finds nothing more."""
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        begin = year_begins(year) - 1
        offsets = [datetime.fromtimestamp(begin + quarter * 21_600, zone).utcoffset() for quarter in range(366 * 4)]
        seen = sum(a != b for a, b in pairwise(offsets))
        assert len(changes_in(zone, year)) == seen, name


@pytest.mark.parametrize(("gap", "fold"), [("shift", "first"), ("skip", "last"), ("shift", "both"), ("skip", "first")])
@pytest.mark.parametrize(("name", "wall"), CHANGES)
def test_spans_cover_a_year_without_a_hole(name: str, wall: str, gap: Gap, fold: Fold) -> None:
    year = int(wall[:4])
    spans = spans_in(ZoneInfo(name), year, gap, fold)
    assert spans[0].begin == year_begins(year)
    assert spans[-1].end == year_begins(year + 1)
    assert all(a.end == b.begin for a, b in pairwise(spans))


@repeatable
@given(
    st.sampled_from(CHANGES),
    st.integers(-48 * 60, 48 * 60),
    st.sampled_from(["shift", "skip"]),
    st.sampled_from(["first", "last"]),
)
def test_a_rule_with_one_occurrence_has_it_where_its_wall_time_resolves(
    change: tuple[str, str], minutes: int, gap: Gap, fold: Fold
) -> None:
    name, near = change
    local = datetime.fromisoformat(near) + timedelta(minutes=minutes)
    day_before = local - timedelta(days=4)
    text = f"RRULE:FREQ=DAILY;INTERVAL=4\nEXDATE:{day_before:%Y%m%dT%H%M%S}"
    expected = resolve_local(local, ZoneInfo(name), gap, fold)
    found = list_times(2, start_at=day_before.isoformat(), timezone=name, rrule=text, dst_gap=gap, dst_fold=fold)
    seconds = "%Y-%m-%d %H:%M" + (":%S" if expected and expected.second else "")
    assert (expected is None) == (found[0] > f"{local + timedelta(days=2):%Y-%m-%d %H:%M}")
    assert expected is None or found[0] == expected.strftime(seconds)


def week_of(day: date, week_start: int) -> tuple[int, int]:
    """RFC 5545: a week belongs to the year that has at least four of its days."""
    fourth = day - timedelta(days=(day.weekday() - week_start) % 7) + timedelta(days=3)
    return fourth.year, (fourth - date(fourth.year, 1, 1)).days // 7 + 1


@pytest.mark.parametrize("number", [1, 2, 51, 52, 53, -1, -51, -52, -53])
def test_week_numbers_around_new_year_are_those_of_the_definition(number: int) -> None:
    for week_start in (0, 3, 6):
        for year in range(2000, 2028):
            length = 366 if year % 4 == 0 else 365
            around_new_year = {*range(15), *range(length - 15, length)}
            expected = {day for day in around_new_year if number in numbers_of(year, day, week_start)}
            found = days_of_year(DayParts(week_number=(number,), week_start=week_start), year)
            assert around_new_year & set(found) == expected


def numbers_of(year: int, day: int, week_start: int) -> tuple[int, int]:
    """The number of a day's week from the beginning and from the end of the year the week belongs to."""
    of_year, week = week_of(date(year, 1, 1) + timedelta(days=day), week_start)
    weeks = (week_of(date(of_year, 12, december), week_start) for december in range(22, 32))
    return week, week - max(number for its_year, number in weeks if its_year == of_year) - 1
