"""The days of a month or of a year that a rule names. python-dateutil expands them once for each kind of month or year.

The kind of a month is its length and first weekday, which makes 28 kinds. The kind of a year is its first weekday, and
whether it, the year before or the year after is a leap year (for week numbers). So dateutil never iterates: it expands
a single period, and a rule that is old, sparse or impossible costs no more than a new and frequent one.
"""

from calendar import isleap, monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

from dateutil.rrule import MONTHLY, YEARLY, rrule, weekdays  # type: ignore[import-untyped]

from shared.recurrence.parts import DayParts

# With such an interval dateutil finds no second period in its calendar: it stops after the first.
ONE_YEAR_ONLY = 9_999
ONE_MONTH_ONLY = 12 * ONE_YEAR_ONLY

YearKind = tuple[int, bool, bool, bool]


def days_of_month(parts: DayParts, year: int, month: int) -> tuple[int, ...]:
    """Return the days of the month; 0 is the first. With SKIP, -1 and the length are in the neighbouring months."""
    if parts.month and month not in parts.month:
        return ()
    return expand_month(parts, *monthrange(year, month))


def days_of_year(parts: DayParts, year: int) -> tuple[int, ...]:
    """Return the days of the year; 0 is 1 January. With SKIP, -1 and the length are days of the neighbouring years."""
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
    """Return weekdays for dateutil, MO and 1TU in separate lists: of one list it keeps what is both."""
    every = tuple(weekdays[weekday] for weekday, nth in parts.weekday if not nth)
    counted = tuple(weekdays[weekday](nth) for weekday, nth in parts.weekday if nth)
    # Without any day part dateutil uses the day of `begin`; here it means every day.
    return [chosen for chosen in (every, counted) if chosen] or [weekdays if every_day else ()]


@lru_cache(maxsize=1)
def months_by_kind() -> dict[tuple[int, int], tuple[int, int]]:
    return {monthrange(year, month): (year, month) for year in range(2000, 2028) for month in range(1, 13)}


@lru_cache(maxsize=1)
def years_by_kind() -> dict[YearKind, int]:
    return {kind_of(year): year for year in range(2000, 2028)}


def kind_of(year: int) -> YearKind:
    return date(year, 1, 1).weekday(), isleap(year - 1), isleap(year), isleap(year + 1)


# Week numbers count as in RFC 5545 and ISO 8601, from any first weekday. dateutil is wrong around New Year: it
# assigns days to the wrong week (1 January 2011 is in week 52, not 53), and does not find the first week of the next
# year by its negative number.


def days_in_weeks(numbers: tuple[int, ...], week_start: int, year: int) -> set[int]:
    """Return the days, from 0 at 1 January, in weeks with these numbers. Negative ones count from its end."""
    begin, end = date(year, 1, 1), date(year, 12, 31)
    first = begin - timedelta(days=(begin.weekday() - week_start) % 7)
    found: set[int] = set()
    while first <= end:
        # A week belongs to the year that has most of its days, which is the year of its fourth day.
        fourth = first + timedelta(days=3)
        number = (fourth.timetuple().tm_yday - 1) // 7 + 1
        if number in numbers or number - weeks_in(fourth.year, week_start) - 1 in numbers:
            found.update((first - begin).days + day for day in range(7))
        first += timedelta(days=7)
    return {day for day in found if 0 <= day <= (end - begin).days}


def weeks_in(year: int, week_start: int) -> int:
    """Return the number of weeks of a year, 52 or 53: the number of its fourth weekdays."""
    last = date(year, 12, 31)
    fourth = last - timedelta(days=(last.weekday() - week_start - 3) % 7)
    return (fourth.timetuple().tm_yday - 1) // 7 + 1


# SKIP of RFC 7529, for the Gregorian calendar: substitutes for days that a month or a year does not have. Only
# FREQ=MONTHLY and YEARLY can name such days: the 29th to 31st of a month, from either end, and the 366th of a year.
# BACKWARD takes the day before, FORWARD the day after; BYDAY and BYSETPOS treat a substitute like any other day. For
# the other frequencies days are only a filter, no day is missing, and SKIP has no effect.


def month_substitutes(parts: DayParts, first: date) -> set[int]:
    """Return substitutes for days that the month does not have, as days from its first."""
    if parts.skip == "OMIT":
        return set()
    length = monthrange(first.year, first.month)[1]
    substitutes = {substitute_for(day, length, parts) for day in parts.month_day if abs(day) > length}
    return {days for days in substitutes if weekday_fits(parts, first, days)}


def year_substitutes(parts: DayParts, first: date) -> set[int]:
    """Return substitutes for days that the year and its months do not have, as days from 1 January."""
    if parts.skip == "OMIT" or parts.week_number or (parts.month_day and parts.year_day):
        return set()
    found: set[int] = set()
    if parts.month_day:
        for month in parts.month or range(1, 13):
            begin = date(first.year, month, 1)
            found |= {(begin - first).days + days for days in month_substitutes(parts, begin)}
    if not isleap(first.year):
        # The 366th day is in December; counted from the end of the year it is in January.
        missing = [day for day, month in ((366, 12), (-366, 1)) if day in parts.year_day and fits_month(parts, month)]
        substitutes = {substitute_for(day, 365, parts) for day in missing}
        found |= {days for days in substitutes if weekday_fits(parts, first, days)}
    return found


def substitute_for(day: int, length: int, parts: DayParts) -> int:
    """Return the day next to a missing one, which is after the end, or before the beginning if `day` is negative."""
    after = length if day > 0 else 0
    return after - 1 if parts.skip == "BACKWARD" else after


def fits_month(parts: DayParts, month: int) -> bool:
    return not parts.month or month in parts.month


def weekday_fits(parts: DayParts, first: date, days: int) -> bool:
    weekday = (first + timedelta(days=days)).weekday()
    return not parts.weekday or any(wanted == weekday for wanted, _ in parts.weekday)
