"""The days of a month or of a year that a rule names, expanded by python-dateutil, once for each kind.

As to its days, a month is one of 28 kinds (its length and the weekday it begins with), and so is a year (its first
weekday, and whether it, the one before or the one after is a leap year, for the week numbers). So dateutil never
walks: it expands a single period, and a rule that is old, sparse or impossible costs no more than a young and busy one.
"""

from calendar import isleap, monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from dateutil.rrule import MONTHLY, YEARLY, rrule, weekdays  # type: ignore[import-untyped]

from shared.recurrence.parts import DayParts
from shared.recurrence.skip import month_substitutes, year_substitutes
from shared.recurrence.weeks import days_in_weeks

# An interval so long that dateutil finds no second period before its calendar ends: it stops after the first.
ONE_YEAR_ONLY = 9_999
ONE_MONTH_ONLY = 12 * ONE_YEAR_ONLY

YearKind = tuple[int, bool, bool, bool]


def days_of_month(parts: DayParts, year: int, month: int) -> tuple[int, ...]:
    """The days, counted from 0 at the first of the month; -1 and its length are its neighbours, where SKIP leads."""
    if parts.month and month not in parts.month:
        return ()
    return expand_month(parts, *monthrange(year, month))


def days_of_year(parts: DayParts, year: int) -> tuple[int, ...]:
    """The days, counted from 0 at the first of January, with the neighbours as above."""
    return expand_year(parts, kind_of(year))


@lru_cache(maxsize=4096)
def expand_month(parts: DayParts, weekday: int, length: int) -> tuple[int, ...]:
    year, month = months_by_kind()[weekday, length]
    begin = datetime(year, month, 1, tzinfo=UTC)
    days = {found.day - 1 for found in expand(MONTHLY, begin, ONE_MONTH_ONLY, parts, ())}
    return tuple(sorted(days | month_substitutes(parts, begin.date())))


@lru_cache(maxsize=4096)
def expand_year(parts: DayParts, kind: YearKind) -> tuple[int, ...]:
    begin = datetime(years_by_kind()[kind], 1, 1, tzinfo=UTC)
    days = {(found - begin).days for found in expand(YEARLY, begin, ONE_YEAR_ONLY, parts, parts.month)}
    if parts.week_number:
        days &= days_in_weeks(parts.week_number, parts.week_start, begin.year)
    return tuple(sorted(days | year_substitutes(parts, begin.date())))


def expand(freq: int, begin: datetime, interval: int, parts: DayParts, months: tuple[int, ...]) -> Iterator[datetime]:
    by = {
        "bymonth": months,
        "byyearday": parts.year_day,
        "bymonthday": parts.month_day,
    }
    given: dict[str, Any] = {name: values for name, values in by.items() if values}
    for chosen in weekdays_apart(parts, every_day=not given or set(given) == {"bymonth"}):
        if chosen:
            given["byweekday"] = chosen
        yield from rrule(freq, begin, interval, parts.week_start, byhour=0, byminute=0, bysecond=0, **given)


def weekdays_apart(parts: DayParts, *, every_day: bool) -> list[tuple[Any, ...]]:
    """The weekdays as dateutil takes them: of MO and 1TU in one list it would keep what is both, not either."""
    every = tuple(weekdays[weekday] for weekday, nth in parts.weekday if not nth)
    counted = tuple(weekdays[weekday](nth) for weekday, nth in parts.weekday if nth)
    # Without any day part dateutil would take the day of `begin`; here none means every day.
    return [chosen for chosen in (every, counted) if chosen] or [weekdays if every_day else ()]


@lru_cache(maxsize=1)
def months_by_kind() -> dict[tuple[int, int], tuple[int, int]]:
    return {monthrange(year, month): (year, month) for year in range(2000, 2028) for month in range(1, 13)}


@lru_cache(maxsize=1)
def years_by_kind() -> dict[YearKind, int]:
    return {kind_of(year): year for year in range(2000, 2028)}


def kind_of(year: int) -> YearKind:
    return date(year, 1, 1).weekday(), isleap(year - 1), isleap(year), isleap(year + 1)
