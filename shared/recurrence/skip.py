"""RFC 7529 SKIP for the Gregorian calendar: the days that stand in for those a month or a year does not have.

Only FREQ=MONTHLY and YEARLY name days that may be missing: the 29th to 31st of a month, from either end, and the 366th
of a year. BACKWARD takes the day before the hole, FORWARD the one after; then BYDAY and BYSETPOS see the stand-in as
they see any other day. For the other frequencies days only limit, nothing is ever missing, and SKIP changes nothing.
"""

from calendar import isleap, monthrange
from datetime import date, timedelta

from shared.recurrence.parts import DayParts


def month_substitutes(parts: DayParts, first: date) -> set[int]:
    """Stand-ins for days the month does not have, as days from its first."""
    if parts.skip == "OMIT":
        return set()
    length = monthrange(first.year, first.month)[1]
    stand_ins = {stand_in(day, length, parts) for day in parts.month_day if abs(day) > length}
    return {days for days in stand_ins if weekday_fits(parts, first, days)}


def year_substitutes(parts: DayParts, first: date) -> set[int]:
    """Stand-ins for days the year and its months do not have, as days from 1 January."""
    if parts.skip == "OMIT" or parts.week_number or (parts.month_day and parts.year_day):
        return set()
    found: set[int] = set()
    if parts.month_day:
        for month in parts.month or range(1, 13):
            begin = date(first.year, month, 1)
            found |= {(begin - first).days + days for days in month_substitutes(parts, begin)}
    if not isleap(first.year):
        # The 366th day is in December, counted from the end of the year it is in January.
        missing = [day for day, month in ((366, 12), (-366, 1)) if day in parts.year_day and fits_month(parts, month)]
        found |= {days for days in (stand_in(day, 365, parts) for day in missing) if weekday_fits(parts, first, days)}
    return found


def stand_in(day: int, length: int, parts: DayParts) -> int:
    """The neighbour of a hole behind the end (a day counted from the beginning) or before the beginning."""
    hole = length if day > 0 else -1
    back = parts.skip == "BACKWARD"
    if hole == length:
        return length - 1 if back else length
    return -1 if back else 0


def fits_month(parts: DayParts, month: int) -> bool:
    return not parts.month or month in parts.month


def weekday_fits(parts: DayParts, first: date, days: int) -> bool:
    weekday = (first + timedelta(days=days)).weekday()
    return not parts.weekday or any(wanted == weekday for wanted, _ in parts.weekday)
