"""The pattern of hourly, minutely and secondly rules: even steps of elapsed time, as wall times.

The grid of steps is in elapsed time from DTSTART on, so a change of the zone's offset neither stretches nor doubles a
step. BYHOUR and the other limits apply to what the clock shows there: that is why `seek` takes the offset.
"""

from bisect import bisect_left
from itertools import product

from shared.recurrence.arithmetic import DAY, NEVER, SearchBudget
from shared.recurrence.parts import RuleParts
from shared.recurrence.patterns import at_positions
from shared.recurrence.periods import EveryDays

UNITS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}


class Ticks:
    """A pattern whose wall times are the steps of an even grid that pass the limits of the rule."""

    __slots__ = ("days", "inside_by_offset", "limits", "parts", "start_at", "step", "unit")

    def __init__(self, parts: RuleParts, days: EveryDays, start_at: int) -> None:
        self.parts, self.days, self.start_at = parts, days, start_at
        self.unit = UNITS[parts.freq]
        self.step = parts.interval * self.unit
        self.inside_by_offset: dict[int, tuple[int, ...]] = {}
        # For each limit: the size of the larger unit, the size of the limited unit, and its allowed values.
        sizes = ((DAY, 3600, parts.hour), (3600, 60, parts.minute), (60, 1, parts.second))
        self.limits = tuple((whole, size, values) for whole, size, values in sizes if values and size >= self.unit)

    def seek(self, low: int, high: int, offset: int, budget: SearchBudget) -> int:
        start = self.start_at + offset
        grid = start - start % self.unit
        inside = self.inside_by_offset.get(offset)
        if inside is None:
            inside = self.inside_by_offset[offset] = seconds_inside(self.parts, start)
        wall = low
        while wall < high:
            budget.spend()
            tick = grid - (grid - wall + wall % self.unit) // self.step * self.step
            allowed = self.not_before(tick, budget)
            if allowed > tick:
                wall = allowed
                continue
            position = bisect_left(inside, wall - tick)
            if position < len(inside):
                wall = tick + inside[position]
                if wall < high:
                    return wall
                break
            wall = tick + self.unit
        # Another offset moves the grid a little, but not the days; and the unit around `high` may still have a hit.
        day = self.days.next_day(high // DAY, budget)
        tick = grid - (grid - high + self.unit) // self.step * self.step
        return NEVER if day is None else max(high, day * DAY, tick)

    def not_before(self, tick: int, budget: SearchBudget) -> int:
        """Return the tick if it passes the limits, else the next wall time that may pass them."""
        day = self.days.next_day(tick // DAY, budget)
        if day is None:
            return NEVER
        if day > tick // DAY:
            return day * DAY
        for whole, size, values in self.limits:
            now = tick % whole // size
            if now not in values:
                later = bisect_left(values, now)
                return tick - tick % whole + (values[later] * size if later < len(values) else whole)
        return tick


def seconds_inside(parts: RuleParts, start: int) -> tuple[int, ...]:
    """Return the seconds of each unit that the rule names: by its finer parts, or else by its start."""
    seconds = parts.second or (start % 60,)
    minutes = parts.minute or (start // 60 % 60,)
    if parts.freq == "HOURLY":
        inside = tuple(sorted(minute * 60 + second for minute, second in product(minutes, seconds)))
    else:
        inside = seconds if parts.freq == "MINUTELY" else (0,)
    return at_positions(inside, parts.positions)
