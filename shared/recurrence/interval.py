"""every_seconds: a plain interval on the absolute line, from its start on, to the microsecond and without drift."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.recurrence.arithmetic import END, instant_of
from shared.recurrence.rule import Occurrence

END_INSTANT = instant_of(END)


@dataclass(frozen=True, slots=True)
class IntervalRule:
    start: datetime
    every: timedelta

    def first(self) -> Occurrence | None:
        return Occurrence(self.start, 1)

    def next_after(self, occurrence: Occurrence) -> Occurrence | None:
        return self.number(max(0, (occurrence.at - self.start) // self.every + 1))

    def is_cut_short(self, occurrence: Occurrence) -> bool:
        return False  # it is computed, not searched for

    def latest_before(self, occurrence: Occurrence, instant: datetime) -> Occurrence:
        latest = self.number((min(instant, END_INSTANT) - self.start - timedelta.resolution) // self.every)
        return latest if latest is not None and latest.at > occurrence.at else occurrence

    def number(self, steps: int) -> Occurrence | None:
        """The ring so many steps after the start."""
        if steps < 0 or self.every * steps >= END_INSTANT - self.start:
            return None
        return Occurrence(self.start + self.every * steps, steps + 1)
