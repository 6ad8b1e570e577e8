"""Whole seconds since 1970, the number this package counts in: on the UTC line ("at") or on a wall clock ("wall").

A wall second is the reading of a clock without its zone, counted as if it were UTC; `wall - offset` is the instant.
Nothing rings before 1900 or after 2199: a calendar that far away is a guess, and a bound makes every search end.
"""

from datetime import UTC, date, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DAY = 86_400
EPOCH_ORDINAL = EPOCH.toordinal()

FIRST_YEAR, LAST_YEAR = 1900, 2199
BEGIN = (datetime(FIRST_YEAR, 1, 1, tzinfo=UTC) - EPOCH) // SECOND
END = (datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC) - EPOCH) // SECOND

NEVER = END + 30 * DAY
"""What a pattern answers when nothing follows: later than any wall clock reads while it is still 2199 somewhere."""


def at_of(instant: datetime) -> int:
    """The instant's second, its fraction cut off."""
    return (instant - EPOCH) // SECOND


def instant_of(at: int) -> datetime:
    return EPOCH + timedelta(seconds=at)


def wall_of(local: datetime) -> int:
    """What the clock reads, whatever its zone."""
    return (local.replace(tzinfo=UTC) - EPOCH) // SECOND


def day_number(day: date) -> int:
    return day.toordinal() - EPOCH_ORDINAL


def date_of(number: int) -> date:
    return date.fromordinal(number + EPOCH_ORDINAL)


STEPS = 10_000
"""Steps of one line in one search, each of one or two microseconds: centuries of empty months fit in, and the four
lines that a rule may have take less than a tenth of a second together."""


class BudgetExceeded(Exception):
    """The search has used up its steps."""


class SearchBudget:
    """The steps one search may still take."""

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def give_back(self, steps: int) -> None:
        self.left += steps

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise BudgetExceeded
