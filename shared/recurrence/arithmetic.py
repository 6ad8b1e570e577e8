"""The unit of this package: whole seconds since 1970, in UTC (named "at") or on a wall clock (named "wall"). A wall
second is the local date and time counted as if it were UTC; `wall - offset` is the instant. No occurrence is before
1900 or after 2199: calendars that far away are a guess, and the limit makes every search end.
"""

from datetime import UTC, date, datetime, timedelta

from shared.contract.fields import FIRST_YEAR, LAST_YEAR

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DAY = 86_400
EPOCH_ORDINAL = EPOCH.toordinal()

BEGIN = (datetime(FIRST_YEAR, 1, 1, tzinfo=UTC) - EPOCH) // SECOND
END = (datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC) - EPOCH) // SECOND

# A pattern returns this if no wall time follows. It is later than any wall time of the year 2199.
NEVER = END + 30 * DAY


def at_of(instant: datetime) -> int:
    """Return the second of the instant, without its fraction."""
    return (instant - EPOCH) // SECOND


def instant_of(at: int) -> datetime:
    return EPOCH + timedelta(seconds=at)


def wall_of(local: datetime) -> int:
    """Return the wall second of a local date and time. Its zone is ignored."""
    return (local.replace(tzinfo=UTC) - EPOCH) // SECOND


def day_number(day: date) -> int:
    return day.toordinal() - EPOCH_ORDINAL


def date_of(number: int) -> date:
    return date.fromordinal(number + EPOCH_ORDINAL)


# The budget of one line in one search. A step takes one or two microseconds: the budget suffices for centuries of empty
# months, and the four lines that a rule may have take less than a tenth of a second together.
MAX_STEPS = 10_000


class BudgetExceeded(Exception):
    """A search has spent its budget."""


class SearchBudget:
    """Counts how many steps a search may still take."""

    __slots__ = ("left",)

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps

    def refund(self, steps: int) -> None:
        self.left += steps

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise BudgetExceeded
