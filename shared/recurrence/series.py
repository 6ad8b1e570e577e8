"""Converts the wall times of a pattern into instants of a zone, in order."""

from typing import NamedTuple

from shared.recurrence.arithmetic import BEGIN, DAY, END, NEVER, SearchBudget
from shared.recurrence.patterns import Pattern
from shared.recurrence.zones import Clock

# Two offsets of one zone, at any two times, differ by less than this.
MAX_OFFSET_DIFFERENCE = 2 * DAY

# What going on to another span costs, as the changes of its year may have to be found first.
NEW_SPAN_STEPS = 30


class Hit(NamedTuple):
    """An instant at which a series has an occurrence, and what the clock shows then."""

    at: int
    walls: tuple[int, ...]  # two if a time that is shifted out of a gap meets another occurrence
    single_offset_until: int  # up to here, or to `at`, the series uses one offset only


class Series:
    """Finds the hits of one RRULE or cron expression in its zone, from its start to its end.

    Start and end are instants. A rule of wall times has them as wall times, too: in a fold these tell more.
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
        """Return the first hit in [at, stop), or None."""
        at, stop = max(at, self.start), min(stop, self.stop)
        price = 1
        while at < stop:
            budget.spend(price)
            price = NEW_SPAN_STEPS
            span = self.clock.span_at(at)
            # Not beyond `stop`: a span may be a year long without any hit.
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
                at = max(at, resume - MAX_OFFSET_DIFFERENCE)
        return None


def closer(one: Hit | None, other: Hit) -> Hit:
    """Return the earlier hit. Two hits at one instant become one."""
    if one is None or other.at < one.at:
        return other
    if other.at == one.at:
        return Hit(one.at, one.walls + other.walls, min(one.single_offset_until, other.single_offset_until))
    return one
