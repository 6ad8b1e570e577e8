"""The occurrences where a clock is put forward or back, zone by zone, with the instants written out in UTC."""

from datetime import datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from shared.recurrence import BadRule, resolve_local
from tests.unit.recurrence.reading import list_times, short, walk

NEW_YORK = "America/New_York"

# zone, rule, start, dst fields, the first occurrences
DAILY: dict[str, tuple[str, str, str, dict[str, str], list[str]]] = {
    "New York in March: half past two moves to half past three": (
        NEW_YORK,
        "FREQ=DAILY",
        "2024-03-09T02:30:00",
        {},
        ["2024-03-09 07:30", "2024-03-10 07:30", "2024-03-11 06:30"],
    ),
    "New York in March: or is left out": (
        NEW_YORK,
        "FREQ=DAILY",
        "2024-03-09T02:30:00",
        {"dst_gap": "skip"},
        ["2024-03-09 07:30", "2024-03-11 06:30", "2024-03-12 06:30"],
    ),
    "New York in March: the shifted 2:30 and the genuine 3:30 are one occurrence": (
        NEW_YORK,
        "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30",
        "2024-03-10T00:00:00",
        {},
        ["2024-03-10 07:00", "2024-03-10 07:30", "2024-03-11 06:00", "2024-03-11 06:30", "2024-03-11 07:00"],
    ),
    "New York in March: a shifted time may come after a later one": (
        NEW_YORK,
        "RRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=45\nRRULE:FREQ=DAILY;BYHOUR=3;BYMINUTE=15",
        "2024-03-10T00:00:00",
        {},
        ["2024-03-10 07:15", "2024-03-10 07:45", "2024-03-11 06:45", "2024-03-11 07:15"],
    ),
    "New York in November: half past one is the first pass": (
        NEW_YORK,
        "FREQ=DAILY",
        "2024-11-02T01:30:00",
        {},
        ["2024-11-02 05:30", "2024-11-03 05:30", "2024-11-04 06:30"],
    ),
    "New York in November: or the second": (
        NEW_YORK,
        "FREQ=DAILY",
        "2024-11-02T01:30:00",
        {"dst_fold": "last"},
        ["2024-11-02 05:30", "2024-11-03 06:30", "2024-11-04 06:30"],
    ),
    "New York in November: or both times": (
        NEW_YORK,
        "FREQ=DAILY",
        "2024-11-02T01:30:00",
        {"dst_fold": "both"},
        ["2024-11-02 05:30", "2024-11-03 05:30", "2024-11-03 06:30", "2024-11-04 06:30"],
    ),
    "Lord Howe puts its clock forward by half an hour": (
        "Australia/Lord_Howe",
        "FREQ=DAILY",
        "2024-10-05T02:15:00",
        {},
        ["2024-10-04 15:45", "2024-10-05 15:45", "2024-10-06 15:15"],
    ),
    "Lord Howe puts it back by half an hour": (
        "Australia/Lord_Howe",
        "FREQ=DAILY",
        "2025-04-05T01:45:00",
        {"dst_fold": "both"},
        ["2025-04-04 14:45", "2025-04-05 14:45", "2025-04-05 15:15", "2025-04-06 15:15"],
    ),
    "Beirut has no midnight in March": (
        "Asia/Beirut",
        "FREQ=DAILY",
        "2025-03-29T00:00:00",
        {},
        ["2025-03-28 22:00", "2025-03-29 22:00", "2025-03-30 21:00"],
    ),
    "Beirut repeats the last hour of a day in October": (
        "Asia/Beirut",
        "FREQ=DAILY",
        "2025-10-24T23:30:00",
        {"dst_fold": "both"},
        ["2025-10-24 20:30", "2025-10-25 20:30", "2025-10-25 21:30", "2025-10-26 21:30"],
    ),
    "Cairo has no midnight on the last Friday of April": (
        "Africa/Cairo",
        "FREQ=DAILY",
        "2024-04-25T00:15:00",
        {},
        ["2024-04-24 22:15", "2024-04-25 22:15", "2024-04-26 21:15"],
    ),
    "Asunción had no midnight in October": (
        "America/Asuncion",
        "FREQ=DAILY",
        "2023-09-30T00:00:00",
        {"dst_gap": "skip"},
        ["2023-09-30 04:00", "2023-10-02 03:00"],
    ),
    "Santiago has no midnight in September": (
        "America/Santiago",
        "FREQ=DAILY",
        "2024-09-07T00:00:00",
        {},
        ["2024-09-07 04:00", "2024-09-08 04:00", "2024-09-09 03:00"],
    ),
    "Havana has midnight twice in November": (
        "America/Havana",
        "FREQ=DAILY",
        "2025-11-01T00:00:00",
        {},
        ["2025-11-01 04:00", "2025-11-02 04:00", "2025-11-03 05:00"],
    ),
    "Havana has midnight twice in November, and a rule may have both": (
        "America/Havana",
        "FREQ=DAILY",
        "2025-11-01T00:00:00",
        {"dst_fold": "both"},
        ["2025-11-01 04:00", "2025-11-02 04:00", "2025-11-02 05:00", "2025-11-03 05:00"],
    ),
    "St John's went back from 0:01 to 23:01 of the day before": (
        "America/St_Johns",
        "FREQ=DAILY;BYHOUR=0,23;BYMINUTE=0,30",
        "2006-10-28T23:00:00",
        {"dst_fold": "both"},
        [
            "2006-10-29 01:30",
            "2006-10-29 02:00",
            "2006-10-29 02:30",
            "2006-10-29 03:00",
            "2006-10-29 03:30",
            "2006-10-29 04:00",
        ],
    ),
    "Apia had no 30 December 2011: its occurrence meets the one of the 31st": (
        "Pacific/Apia",
        "FREQ=DAILY",
        "2011-12-28T12:00:00",
        {},
        ["2011-12-28 22:00", "2011-12-29 22:00", "2011-12-30 22:00", "2011-12-31 22:00"],
    ),
    "Apia had no 30 December 2011: a weekly Friday moves to Saturday": (
        "Pacific/Apia",
        "FREQ=WEEKLY",
        "2011-12-23T12:00:00",
        {},
        ["2011-12-23 22:00", "2011-12-30 22:00", "2012-01-05 22:00"],
    ),
    "Apia had no 30 December 2011: a weekly Friday that skips": (
        "Pacific/Apia",
        "FREQ=WEEKLY",
        "2011-12-23T12:00:00",
        {"dst_gap": "skip"},
        ["2011-12-23 22:00", "2012-01-05 22:00"],
    ),
    "Monrovia was 44 minutes and 30 seconds behind until 1972": (
        "Africa/Monrovia",
        "FREQ=DAILY",
        "1972-01-05T12:00:00",
        {},
        ["1972-01-05 12:44:30", "1972-01-06 12:44:30", "1972-01-07 12:00"],
    ),
    "Dublin was 25 minutes and 21 seconds behind until 1916": (
        "Europe/Dublin",
        "FREQ=YEARLY",
        "1914-01-01T00:00:00",
        {},
        ["1914-01-01 00:25:21", "1915-01-01 00:25:21", "1916-01-01 00:25:21", "1917-01-01 00:00"],
    ),
    "Pyongyang changed its standard time by half an hour": (
        "Asia/Pyongyang",
        "FREQ=DAILY",
        "2018-05-03T23:45:00",
        {},
        ["2018-05-03 15:15", "2018-05-04 15:15", "2018-05-05 14:45"],
    ),
}

SHORTER: dict[str, tuple[str, str, str, dict[str, str], list[str]]] = {
    "an hourly rule passes the gap without a pause": (
        NEW_YORK,
        "FREQ=HOURLY",
        "2024-03-10T00:30:00",
        {},
        ["2024-03-10 05:30", "2024-03-10 06:30", "2024-03-10 07:30", "2024-03-10 08:30"],
    ),
    "every two hours stays every two hours": (
        NEW_YORK,
        "FREQ=HOURLY;INTERVAL=2",
        "2024-03-10T00:00:00",
        {},
        ["2024-03-10 05:00", "2024-03-10 07:00", "2024-03-10 09:00"],
    ),
    "every 90 minutes stays every 90 minutes through a fold": (
        NEW_YORK,
        "FREQ=MINUTELY;INTERVAL=90",
        "2024-11-03T00:00:00",
        {},
        ["2024-11-03 04:00", "2024-11-03 05:30", "2024-11-03 07:00", "2024-11-03 08:30"],
    ),
    "an hourly rule in Lord Howe goes on from half past": (
        "Australia/Lord_Howe",
        "FREQ=HOURLY",
        "2025-04-06T00:00:00",
        {},
        ["2025-04-05 13:00", "2025-04-05 14:00", "2025-04-05 15:00", "2025-04-05 16:00"],
    ),
    "but a minute that is named stays that minute": (
        "Australia/Lord_Howe",
        "FREQ=HOURLY;BYMINUTE=0",
        "2025-04-06T00:00:00",
        {},
        ["2025-04-05 13:00", "2025-04-05 14:00", "2025-04-05 15:30", "2025-04-05 16:30"],
    ),
    "an hour that is named has both passes": (
        NEW_YORK,
        "FREQ=HOURLY;BYHOUR=1",
        "2024-11-02T00:00:00",
        {},
        ["2024-11-02 05:00", "2024-11-03 05:00", "2024-11-03 06:00", "2024-11-04 06:00"],
    ),
    "and is missing when it does not exist": (
        NEW_YORK,
        "FREQ=HOURLY;BYHOUR=2",
        "2024-03-09T00:00:00",
        {},
        ["2024-03-09 07:00", "2024-03-11 06:00"],
    ),
    "unless it shall shift": (
        NEW_YORK,
        "FREQ=MINUTELY;BYHOUR=2;BYMINUTE=30",
        "2024-03-09T00:00:00",
        {"dst_gap": "shift"},
        ["2024-03-09 07:30", "2024-03-10 07:30", "2024-03-11 06:30"],
    ),
    "an hourly rule can be silent in the second pass": (
        NEW_YORK,
        "FREQ=HOURLY",
        "2024-11-03T00:00:00",
        {"dst_fold": "first"},
        ["2024-11-03 04:00", "2024-11-03 05:00", "2024-11-03 07:00"],
    ),
    "or in the first": (
        NEW_YORK,
        "FREQ=HOURLY",
        "2024-11-03T00:00:00",
        {"dst_fold": "last"},
        ["2024-11-03 04:00", "2024-11-03 06:00", "2024-11-03 07:00"],
    ),
}


@pytest.mark.parametrize(
    ("zone", "rule", "start", "dst", "expected"),
    [*DAILY.values(), *SHORTER.values()],
    ids=[*DAILY.keys(), *SHORTER.keys()],
)
def test_the_occurrences_around_a_change_are(
    zone: str, rule: str, start: str, dst: dict[str, Any], expected: list[str]
) -> None:
    assert list_times(len(expected), start_at=start, timezone=zone, rrule=rule, **dst) == expected


@pytest.mark.parametrize(("day", "hours"), [("2024-11-03", 25), ("2024-03-10", 23), ("2024-06-01", 24)])
def test_an_hourly_rule_in_new_york_has_as_many_occurrences_as_the_day_has_hours(day: str, hours: int) -> None:
    zone = ZoneInfo(NEW_YORK)
    found = walk(60, start_at=f"{day}T00:00:00", timezone=NEW_YORK, rrule="FREQ=HOURLY")
    same_day = [occurrence for occurrence in found if occurrence.at.astimezone(zone).date().isoformat() == day]
    assert len(same_day) == hours
    assert {(b.at - a.at).total_seconds() for a, b in pairwise(found)} == {3600.0}


def test_count_counts_occurrences_and_not_skipped_times() -> None:
    skipped: dict[str, Any] = {"start_at": "2024-03-09T02:30:00", "timezone": NEW_YORK, "rrule": "FREQ=DAILY;COUNT=3"}
    assert list_times(**skipped, dst_gap="skip") == ["2024-03-09 07:30", "2024-03-11 06:30", "2024-03-12 06:30"]


def test_count_counts_both_occurrences_of_a_fold() -> None:
    found = walk(start_at="2024-11-02T01:30:00", timezone=NEW_YORK, rrule="FREQ=DAILY;COUNT=3", dst_fold="both")
    assert [(short(occurrence.at), occurrence.index) for occurrence in found] == [
        ("2024-11-02 05:30", 1),
        ("2024-11-03 05:30", 2),
        ("2024-11-03 06:30", 3),
    ]


def test_a_start_in_the_second_pass_has_no_occurrence_in_the_first() -> None:
    assert list_times(2, start_at="2024-11-03T01:30:00-05:00", timezone=NEW_YORK, rrule="FREQ=DAILY") == [
        "2024-11-04 06:30",
        "2024-11-05 06:30",
    ]


@pytest.mark.parametrize(
    ("zone", "local", "gap", "fold", "expected"),
    [
        (NEW_YORK, "2024-07-01T12:00:00", "shift", "first", "2024-07-01 16:00"),
        (NEW_YORK, "2024-03-10T02:30:00", "shift", "first", "2024-03-10 07:30"),
        (NEW_YORK, "2024-03-10T02:30:00", "skip", "first", None),
        (NEW_YORK, "2024-11-03T01:30:00", "shift", "first", "2024-11-03 05:30"),
        (NEW_YORK, "2024-11-03T01:30:00", "shift", "last", "2024-11-03 06:30"),
        (NEW_YORK, "2024-11-03T01:30:00", "shift", "both", "2024-11-03 05:30"),
        ("Pacific/Apia", "2011-12-30T12:00:00", "shift", "first", "2011-12-30 22:00"),
        ("Pacific/Apia", "2011-12-30T12:00:00", "skip", "first", None),
        ("Australia/Lord_Howe", "2024-10-06T02:15:00", "shift", "first", "2024-10-05 15:45"),
        ("Africa/Monrovia", "1960-01-01T00:00:00", "shift", "first", "1960-01-01 00:44:30"),
    ],
)
def test_one_wall_time_becomes_an_instant(zone: str, local: str, gap: Any, fold: Any, expected: str | None) -> None:
    found = resolve_local(datetime.fromisoformat(local), ZoneInfo(zone), gap, fold)
    assert (short(found) if found else None) == expected


def test_a_wall_time_at_the_end_of_the_calendar_is_refused() -> None:
    with pytest.raises(BadRule, match="beyond the calendar"):
        resolve_local(datetime.fromisoformat("9999-12-31T23:00:00"), ZoneInfo(NEW_YORK))


@pytest.mark.parametrize("rule", [{"rrule": "FREQ=MINUTELY"}, {"cron": "* * * * *"}])
def test_a_clock_put_back_over_midnight_right_after_the_start_loses_nothing(rule: dict[str, str]) -> None:
    """St. John's, 29 October 2006: at one minute past midnight the clock went back to 23:01 of the day before."""
    start = "2006-10-29T00:00:00"
    found = list_times(5, start_at=start, timezone="America/St_Johns", **rule)
    assert found == [f"2006-10-29 02:{minute}" for minute in range(30, 35)]
