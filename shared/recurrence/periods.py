"""The days that a rule of a day or longer names: a grid of periods (days, weeks, months, years), and the days in each.

Every grid is anchored at the period of DTSTART, and arithmetic finds any period on it. So a rule costs the same in its
tenth year as in its first: INTERVAL, WKST and BYSETPOS depend on whole periods, never on where a search began.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Protocol

from shared.contract.fields import LAST_YEAR
from shared.recurrence.arithmetic import SearchBudget, date_of, day_number
from shared.recurrence.days import days_of_year
from shared.recurrence.parts import DayParts

THURSDAY = 3  # the weekday of day 0, 1 January 1970
LAST_DAY = day_number(date(LAST_YEAR, 12, 31))
NO_DAY = LAST_DAY + 1_000  # no day was found


class Days(Protocol):
    def next_day(self, day: int, budget: SearchBudget) -> int | None:
        """Return the first day of the rule that is not before `day`; None if there is none up to the end of 2199."""


class Periods(Protocol):
    def number_of(self, day: int) -> int: ...
    def first_day(self, number: int) -> int: ...
    def days_in(self, number: int) -> tuple[int, ...]:
        """Return the days of the rule in this period, counted from its first day, ascending."""


class Weeks:
    __slots__ = ("behind", "parts", "weekdays")

    def __init__(self, parts: DayParts) -> None:
        self.parts = parts
        self.behind = (THURSDAY - parts.week_start) % 7
        self.weekdays = tuple(sorted((weekday - parts.week_start) % 7 for weekday, _ in parts.weekday))

    def number_of(self, day: int) -> int:
        return (day + self.behind) // 7

    def first_day(self, number: int) -> int:
        return number * 7 - self.behind

    def days_in(self, number: int) -> tuple[int, ...]:
        if not self.parts.month:
            return self.weekdays
        first = self.first_day(number)
        return tuple(day for day in self.weekdays if date_of(first + day).month in self.parts.month)


class Months:
    __slots__ = ("days_of",)

    def __init__(self, days_of: Callable[[int, int], tuple[int, ...]]) -> None:
        self.days_of = days_of

    def number_of(self, day: int) -> int:
        found = date_of(day)
        return found.year * 12 + found.month - 1

    def first_day(self, number: int) -> int:
        return day_number(date(number // 12, number % 12 + 1, 1))

    def days_in(self, number: int) -> tuple[int, ...]:
        return self.days_of(number // 12, number % 12 + 1)


class Years:
    __slots__ = ("parts",)

    def __init__(self, parts: DayParts) -> None:
        self.parts = parts

    def number_of(self, day: int) -> int:
        return date_of(day).year

    def first_day(self, number: int) -> int:
        return day_number(date(number, 1, 1))

    def days_in(self, number: int) -> tuple[int, ...]:
        return days_of_year(self.parts, number)


class PeriodGrid:
    """Finds every INTERVALth period, counted from the period of DTSTART."""

    __slots__ = ("anchor", "interval", "last", "periods")

    def __init__(self, periods: Periods, start_day: int, interval: int) -> None:
        self.periods, self.interval = periods, interval
        self.anchor = periods.number_of(start_day)
        self.last = periods.number_of(LAST_DAY)

    def numbers_from(self, day: int) -> range:
        """Return the periods that may have a day from `day` on. With SKIP a day may be just after its period."""
        steps = max(0, (self.periods.number_of(day - 1) - self.anchor) // self.interval)
        return range(self.anchor + steps * self.interval, self.last + 1, self.interval)


class DaysOfPeriods:
    """Finds the days of weekly, monthly and yearly rules. It keeps its last answer: the next search is mostly near."""

    __slots__ = ("grid", "known")

    def __init__(self, grid: PeriodGrid) -> None:
        self.grid = grid
        self.known: tuple[int, int] = (NO_DAY, NO_DAY)

    def next_day(self, day: int, budget: SearchBudget) -> int | None:
        asked, answer = self.known
        if not asked <= day <= answer:
            answer = self.search(day, asked, answer, budget)
            self.known = (day, answer)
        return None if answer == NO_DAY else answer

    def search(self, day: int, asked: int, answer: int, budget: SearchBudget) -> int:
        for number in self.grid.numbers_from(day):
            budget.spend()
            first = self.grid.periods.first_day(number)
            if day < asked < first:
                # The last search began here and found `answer`.
                return answer
            days = self.grid.periods.days_in(number)
            position = bisect_left(days, day - first)
            if position < len(days):
                return first + days[position]
        return NO_DAY


class EveryDays:
    """Finds every INTERVALth day that passes the parts, for daily rules and for the days of shorter ones."""

    __slots__ = ("interval", "parts", "start_day")

    def __init__(self, parts: DayParts, start_day: int, interval: int = 1) -> None:
        # Here days are only a filter: SKIP has no missing day to substitute.
        self.parts = replace(parts, skip="OMIT") if parts.limits() else None
        self.start_day, self.interval = start_day, interval

    def next_day(self, day: int, budget: SearchBudget) -> int | None:
        start, interval = self.start_day, self.interval
        day = max(day, start)
        if day > LAST_DAY:
            return None
        if self.parts is None:
            found = start - (start - day) // interval * interval
            return found if found <= LAST_DAY else None
        for year in range(date_of(day).year, LAST_YEAR + 1):
            budget.spend()
            days = days_of_year(self.parts, year)
            first = day_number(date(year, 1, 1))
            rest = days[bisect_left(days, day - first) :]
            for in_year in rest:
                if (first + in_year - start) % interval == 0:
                    return first + in_year
            budget.spend(len(rest) // 32)  # a year of days without a hit takes longer than one step
        return None
