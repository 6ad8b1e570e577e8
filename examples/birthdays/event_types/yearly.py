"""Every year on the same day; 29 February is kept on the 28th in years that do not have it."""

from datetime import date

from examples.birthdays.event_types.event_type import Recurrence


def rrule(marked: date) -> str:
    """SKIP=BACKWARD (RFC 7529) moves a day that a year does not have to the day before it."""
    return f"FREQ=YEARLY;BYMONTH={marked.month};BYMONTHDAY={marked.day};SKIP=BACKWARD"


def first_from(marked: date, day: date) -> date:
    this_year = _in_year(marked, day.year)
    return this_year if this_year >= day else _in_year(marked, day.year + 1)


def _in_year(marked: date, year: int) -> date:
    try:
        return marked.replace(year=year)
    except ValueError:  # 29 February, and no leap year
        return date(year, 2, 28)


YEARLY = Recurrence(rrule, first_from)
