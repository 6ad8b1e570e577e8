"""Patterns of wall times for rules of a day or longer: days, and times on each of them.

A pattern knows no zone. `seek(low, high, …)` returns the first wall time of the rule that is not before `low`. If that
is not before `high`, it may return any lower bound of it, good to a day, with no wall time between under any offset.
"""

from bisect import bisect_left
from itertools import product
from typing import Protocol

from shared.recurrence.arithmetic import DAY, NEVER, SearchBudget
from shared.recurrence.parts import RuleParts
from shared.recurrence.periods import Days, PeriodGrid


class Pattern(Protocol):
    def seek(self, low: int, high: int, offset: int, budget: SearchBudget) -> int: ...


class TimesOnDays:
    """Names the same times on every day of the rule."""

    __slots__ = ("days", "times")

    def __init__(self, days: Days, times: tuple[int, ...]) -> None:
        self.days, self.times = days, times

    def seek(self, low: int, high: int, offset: int, budget: SearchBudget) -> int:
        day, second = divmod(low, DAY)
        found = self.days.next_day(day, budget)
        if found == day:
            position = bisect_left(self.times, second)
            if position < len(self.times):
                return day * DAY + self.times[position]
            found = self.days.next_day(day + 1, budget)
        return NEVER if found is None else found * DAY + self.times[0]


class PositionsInPeriods:
    """Applies BYSETPOS: of all days and times of a period, in order, it names those at the given positions."""

    __slots__ = ("grid", "positions", "times")

    def __init__(self, grid: PeriodGrid, times: tuple[int, ...], positions: tuple[int, ...]) -> None:
        self.grid, self.times, self.positions = grid, times, positions

    def seek(self, low: int, high: int, offset: int, budget: SearchBudget) -> int:
        nearest = NEVER
        for number in self.grid.numbers_from(low // DAY):
            budget.spend()
            begin = self.grid.periods.first_day(number) * DAY
            # A substitute of SKIP may be on the day before its period, so the search goes one period further.
            if nearest < begin - DAY:
                break
            if begin - DAY >= high:
                # No wall time is before `high`: a lower bound is enough.
                return begin - DAY
            walls = [begin + wall for wall in self.chosen(self.grid.periods.days_in(number))]
            nearest = min([nearest, *(wall for wall in walls if wall >= low)])
        return nearest

    def chosen(self, days: tuple[int, ...]) -> set[int]:
        size = len(days) * len(self.times)
        places = (position - 1 if position > 0 else size + position for position in self.positions)
        found = (divmod(place, len(self.times)) for place in places if 0 <= place < size)
        return {days[day] * DAY + self.times[time] for day, time in found}


def times_of_day(parts: RuleParts, start_second: int) -> tuple[int, ...]:
    """Return all combinations of BYHOUR, BYMINUTE and BYSECOND. DTSTART gives the missing ones."""
    hours = parts.hour or (start_second // 3600,)
    minutes = parts.minute or (start_second // 60 % 60,)
    seconds = parts.second or (start_second % 60,)
    return tuple(
        sorted(hour * 3600 + minute * 60 + second for hour, minute, second in product(hours, minutes, seconds))
    )


def at_positions(values: tuple[int, ...], positions: tuple[int, ...]) -> tuple[int, ...]:
    """Apply BYSETPOS to the values of a period. Without positions, return all of them."""
    if not positions:
        return values
    places = (position - 1 if position > 0 else len(values) + position for position in positions)
    return tuple(sorted({values[place] for place in places if 0 <= place < len(values)}))
