"""Which days of a calendar year lie in numbered weeks, counted as RFC 5545 and ISO 8601 do, from any first weekday.

dateutil is not asked: around New Year it takes days of a year's last week for the wrong one (1 January 2011 is in week
52, not 53), and does not find the first week of the next year by its negative number.
"""

from datetime import date, timedelta


def days_in_weeks(numbers: tuple[int, ...], week_start: int, year: int) -> set[int]:
    """The days from 0 at 1 January whose week has one of the numbers, from either end of the week's own year."""
    begin, end = date(year, 1, 1), date(year, 12, 31)
    first = begin - timedelta(days=(begin.weekday() - week_start) % 7)
    found: set[int] = set()
    while first <= end:
        # A week belongs to the year that has most of it, which is the one of its fourth day.
        fourth = first + timedelta(days=3)
        number = (fourth.timetuple().tm_yday - 1) // 7 + 1
        if number in numbers or number - weeks_in(fourth.year, week_start) - 1 in numbers:
            found.update((first - begin).days + day for day in range(7))
        first += timedelta(days=7)
    return {day for day in found if 0 <= day <= (end - begin).days}


def weeks_in(year: int, week_start: int) -> int:
    """52 or 53: as many as its fourth weekdays."""
    last = date(year, 12, 31)
    fourth = last - timedelta(days=(last.weekday() - week_start - 3) % 7)
    return (fourth.timetuple().tm_yday - 1) // 7 + 1
