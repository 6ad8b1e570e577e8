"""29 February, the 31st, the 366th day: left out by default, replaced where RFC 7529 SKIP says so."""

from datetime import UTC, datetime

import pytest
from dateutil.rrule import MONTHLY, rrule  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.recurrence.reading import list_times
from tests.unit.recurrence.rules_at_random import both_ways, repeatable, some


def days(rule: str, start: str, limit: int) -> list[str]:
    return [
        occurrence.removesuffix(" 08:00") for occurrence in list_times(limit, start_at=f"{start}T08:00:00Z", rrule=rule)
    ]


# rule, start, the days of its occurrences
TABLE = {
    "a birthday on 29 February is in leap years": (
        "FREQ=YEARLY",
        "2024-02-29",
        ["2024-02-29", "2028-02-29", "2032-02-29"],
    ),
    "or on 28 February in other years": (
        "FREQ=YEARLY;SKIP=BACKWARD",
        "2024-02-29",
        [
            "2024-02-29",
            "2025-02-28",
            "2026-02-28",
            "2027-02-28",
            "2028-02-29",
            "2029-02-28",
            "2030-02-28",
            "2031-02-28",
            "2032-02-29",
        ],
    ),
    "or on 1 March": (
        "RSCALE=GREGORIAN;FREQ=YEARLY;SKIP=FORWARD",
        "2024-02-29",
        [
            "2024-02-29",
            "2025-03-01",
            "2026-03-01",
            "2027-03-01",
            "2028-02-29",
            "2029-03-01",
            "2030-03-01",
            "2031-03-01",
            "2032-02-29",
        ],
    ),
    "omit is the default by another name": (
        "FREQ=YEARLY;SKIP=OMIT",
        "2024-02-29",
        ["2024-02-29", "2028-02-29"],
    ),
    "2100 is not a leap year": (
        "FREQ=YEARLY",
        "2092-02-29",
        ["2092-02-29", "2096-02-29", "2104-02-29"],
    ),
    "the 31st, only where there is one": (
        "FREQ=MONTHLY",
        "2014-01-31",
        ["2014-01-31", "2014-03-31", "2014-05-31", "2014-07-31", "2014-08-31"],
    ),
    "the 31st, or the first of the next month (RFC 7529)": (
        "RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=FORWARD",
        "2014-01-31",
        ["2014-01-31", "2014-03-01", "2014-03-31", "2014-05-01", "2014-05-31", "2014-07-01", "2014-07-31"],
    ),
    "the 31st, or the last of the month": (
        "FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
        "2024-01-31",
        ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30", "2024-05-31", "2024-06-30"],
    ),
    "a substitute that is an occurrence already counts once": (
        "FREQ=MONTHLY;BYMONTHDAY=1,31;SKIP=FORWARD",
        "2024-04-01",
        ["2024-04-01", "2024-05-01", "2024-05-31", "2024-06-01", "2024-07-01", "2024-07-31"],
    ),
    "several missing days have one stand-in": (
        "FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;SKIP=BACKWARD",
        "2025-02-01",
        ["2025-02-28", "2025-03-28", "2025-03-29", "2025-03-30", "2025-03-31", "2025-04-28"],
    ),
    "the 31st from the end goes back into the month before": (
        "FREQ=MONTHLY;BYMONTHDAY=-31;SKIP=BACKWARD",
        "2025-01-01",
        ["2025-01-01", "2025-01-31", "2025-03-01", "2025-03-31", "2025-05-01", "2025-05-31"],
    ),
    "the 31st from the end goes forward to the first": (
        "FREQ=MONTHLY;BYMONTHDAY=-31;SKIP=FORWARD",
        "2025-01-01",
        ["2025-01-01", "2025-02-01", "2025-03-01", "2025-04-01"],
    ),
    "the 366th day, or the last of the year": (
        "FREQ=YEARLY;BYYEARDAY=366;SKIP=BACKWARD",
        "2023-01-01",
        ["2023-12-31", "2024-12-31", "2025-12-31"],
    ),
    "the 366th day, or the first of the next year": (
        "FREQ=YEARLY;BYYEARDAY=366;SKIP=FORWARD",
        "2023-01-02",
        ["2024-01-01", "2024-12-31", "2026-01-01", "2027-01-01"],
    ),
    "the 366th day from the end, or the last of the year before": (
        "FREQ=YEARLY;BYYEARDAY=-366;SKIP=BACKWARD",
        "2024-01-01",
        ["2024-01-01", "2024-12-31", "2025-12-31", "2026-12-31", "2028-01-01"],
    ),
    "30 February always has a stand-in": (
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;SKIP=BACKWARD",
        "2023-01-01",
        ["2023-02-28", "2024-02-29", "2025-02-28"],
    ),
    "BYDAY looks at the stand-in": (
        "FREQ=MONTHLY;BYMONTHDAY=31;BYDAY=MO,TU,WE,TH,FR;SKIP=BACKWARD",
        "2025-01-01",
        ["2025-01-31", "2025-02-28", "2025-03-31", "2025-04-30", "2025-06-30", "2025-07-31"],
    ),
    "BYSETPOS counts the stand-in": (
        "FREQ=MONTHLY;BYMONTHDAY=15,31;BYSETPOS=-1;SKIP=FORWARD",
        "2025-02-02",
        ["2025-03-01", "2025-03-31", "2025-05-01", "2025-05-31"],
    ),
    "every third month keeps to its grid": (
        "FREQ=MONTHLY;INTERVAL=3;SKIP=BACKWARD",
        "2024-08-31",
        ["2024-08-31", "2024-11-30", "2025-02-28", "2025-05-31"],
    ),
    "for a daily rule days only limit, so nothing is missing": (
        "FREQ=DAILY;BYMONTHDAY=31;SKIP=BACKWARD",
        "2025-01-01",
        ["2025-01-31", "2025-03-31", "2025-05-31"],
    ),
    "nor for a weekly one": (
        "FREQ=WEEKLY;BYDAY=FR;BYMONTH=2;SKIP=FORWARD",
        "2025-02-20",
        ["2025-02-21", "2025-02-28", "2026-02-06"],
    ),
}


@pytest.mark.parametrize(("rule", "start", "expected"), TABLE.values(), ids=TABLE.keys())
def test_the_days_are(rule: str, start: str, expected: list[str]) -> None:
    assert days(rule, start, len(expected)) == expected


@repeatable
@given(some(both_ways(31), 5), st.sampled_from(["BACKWARD", "FORWARD"]), st.integers(1, 5))
def test_skip_replaces_each_missing_day_of_a_month(wanted: tuple[int, ...], skip: str, interval: int) -> None:
    expected = set()
    for first in rrule(MONTHLY, datetime(2023, 1, 1, 8, tzinfo=UTC), interval=interval, count=20):
        length = (first.replace(month=first.month % 12 + 1, year=first.year + first.month // 12) - first).days
        for day in wanted:
            number = day if day > 0 else length + 1 + day
            if not 1 <= number <= length:
                before_the_hole = 0 if number < 1 else length
                number = before_the_hole if skip == "BACKWARD" else before_the_hole + 1
            expected.add(datetime.fromordinal(first.toordinal() + number - 1).date().isoformat())
    rule = f"FREQ=MONTHLY;INTERVAL={interval};BYMONTHDAY={','.join(map(str, wanted))};SKIP={skip}"
    in_order = sorted(day for day in expected if day >= "2023-01-01")
    assert days(rule, "2023-01-01", len(in_order) - 1) == in_order[:-1]
