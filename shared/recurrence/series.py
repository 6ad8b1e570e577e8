"""A pattern of wall times laid on the absolute line of a zone: what rings next from any moment, in order."""

from typing import NamedTuple

from shared.recurrence.arithmetic import BEGIN, DAY, END, NEVER, SearchBudget
from shared.recurrence.patterns import Pattern
from shared.recurrence.zones import Clock

APART = 2 * DAY
"""Clocks of the same zone, at any two times, differ by less than this."""

NEW_SPAN = 30
"""Steps of work that going on to another span may cost, if the changes of its year have to be found first."""


class Hit(NamedTuple):
    at: int
    walls: tuple[int, ...]
    """What the clock showed; two where a time shifted out of a gap meets one that is there already."""
    clear_until: int
    """Up to here, or to its own instant, this series reads its clock with one offset only."""


class Series:
    """One RRULE, or one cron expression, in its zone, from its start to its end.

    Both are instants; a rule that lives on the wall clock has them in wall time as well, which says more in a fold.
    """

    __slots__ = ("clock", "first_wall", "pattern", "start", "stop", "stop_wall")

    def __init__(
        self,
        pattern: Pattern,
        clock: Clock,
        start: int,
        last_at: int | None = None,
        walls: tuple[int | None, int | None] = (None, None),
    ) -> None:
        self.pattern, self.clock, self.start = pattern, clock, start
        self.stop = END if last_at is None else min(END, last_at + 1)
        first_wall, last_wall = walls
        self.first_wall = BEGIN - DAY if first_wall is None else first_wall
        self.stop_wall = NEVER if last_wall is None else last_wall + 1

    def next_from(self, at: int, stop: int, budget: SearchBudget) -> Hit | None:
        """The first ring in [at, stop)."""
        at, stop = max(at, self.start), min(stop, self.stop)
        price = 1
        while at < stop:
            budget.spend(price)
            price = NEW_SPAN
            span = self.clock.span_at(at)
            # Not beyond the bound: a span may have a year of steps that meet nothing.
            end = min(span.end, stop)
            nearest, resume = None, None
            for offset in span.offsets:
                low, high = max(at + offset, self.first_wall), min(end + offset, self.stop_wall)
                wall = self.pattern.seek(low, high, offset, budget) if low < high else high
                if wall < high:
                    found = wall - offset
                    nearest = closer(nearest, Hit(found, (wall,), span.end if len(span.offsets) == 1 else found))
                elif resume is None or wall - offset < resume:
                    resume = wall - offset
            if nearest is not None:
                return nearest
            at = span.end
            if resume is not None and not span.goes_back:
                at = max(at, resume - APART)
        return None


def closer(one: Hit | None, other: Hit) -> Hit:
    if one is None or other.at < one.at:
        return other
    if other.at == one.at:
        return Hit(one.at, one.walls + other.walls, min(one.clear_until, other.clear_until))
    return one
