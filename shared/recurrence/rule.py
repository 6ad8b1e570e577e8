"""Compiled rules. A rule answers which occurrence follows another, and which is the last before a moment.

A rule has no cursor: the caller passes the occurrence from which to go on. So an answer does not depend on earlier
calls, in this process or another, and all jobs with the same RuleSpec share one rule.
"""

from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from shared.errors import BadRule
from shared.recurrence.arithmetic import BEGIN, END, SECOND, BudgetExceeded, at_of, instant_of
from shared.recurrence.dates import NOTHING_EXCLUDED, Excluded
from shared.recurrence.search import Search, SearchOfOne, SearchOfSeveral
from shared.recurrence.series import Series

END_INSTANT = instant_of(END)

# How many occurrences in a row EXDATE may exclude.
MAX_EXCLUDED_IN_A_ROW = 6_000
# How many occurrences `latest_before` counts in one call.
MAX_COUNTED_PER_CALL = 1_000
# How often `occurrences` calls `latest_before` on its way to the moment of the preview.
MAX_PREVIEW_CALLS = 4


class Occurrence(msgspec.Struct, frozen=True, gc=False):
    """An occurrence of a rule: its instant in UTC, and its number, which COUNT limits.

    COUNT does not count an RDATE: it carries the number of the occurrence before it. COUNT does count an occurrence
    that EXDATE excludes, so its number is missing. A rule without COUNT numbers occurrences as they are asked for.
    """

    at: datetime
    index: int


class Rule(Protocol):
    def first(self) -> Occurrence | None:
        """Return the first occurrence, or None if the rule has none."""

    def next_after(self, occurrence: Occurrence) -> Occurrence | None:
        """Return the occurrence that follows the given one, always a later one, or None if the rule has ended."""

    def is_cut_short(self, occurrence: Occurrence) -> bool:
        """Return whether `next_after` returns None only because the search exceeded its budget."""

    def latest_before(self, occurrence: Occurrence, instant: datetime) -> Occurrence:
        """Return the last occurrence before the instant, or the given one if none lies between. A rule with COUNT
        counts its occurrences one by one, and a sparse rule is hard to search: both may stop before they are there.
        Then the caller calls again with the result.
        """


@dataclass(frozen=True, slots=True)
class CalendarRule:
    """Finds the occurrences of RRULE, RDATE and EXDATE lines, or of a cron expression."""

    field: str
    series: tuple[Series, ...]
    count: int | None = None
    extra: tuple[int, ...] = ()  # the instants of RDATE, ascending
    excluded: Excluded = NOTHING_EXCLUDED

    def first(self) -> Occurrence | None:
        try:
            return self.find_from(BEGIN, END, 0, self.search())
        except BudgetExceeded:
            raise BadRule(self.field, f"{self.field}: no occurrence found within reach of the search") from None

    def next_after(self, occurrence: Occurrence) -> Occurrence | None:
        try:
            return self.find_from(at_of(occurrence.at) + 1, END, occurrence.index, self.search())
        except BudgetExceeded:
            return None

    def is_cut_short(self, occurrence: Occurrence) -> bool:
        try:
            self.find_from(at_of(occurrence.at) + 1, END, occurrence.index, self.search())
        except BudgetExceeded:
            return True
        return False

    def latest_before(self, occurrence: Occurrence, instant: datetime) -> Occurrence:
        stop = min(END, at_of(instant + SECOND - timedelta.resolution))
        return self.search_latest(occurrence, stop) if self.count is None else self.count_up_to(occurrence, stop)

    def search_latest(self, occurrence: Occurrence, stop: int) -> Occurrence:
        """Bisect between the given occurrence and `stop`, until no later occurrence lies before `stop`."""
        latest, low, high = occurrence, at_of(occurrence.at) + 1, stop
        search = self.search()
        with suppress(BudgetExceeded):
            while low < high:
                middle = (low + high) // 2
                search.restart()
                found = self.find_from(middle, high, occurrence.index, search)
                if found is None:
                    high = middle
                else:
                    latest, low = found, at_of(found.at) + 1
        return latest

    def count_up_to(self, occurrence: Occurrence, stop: int) -> Occurrence:
        """Count one by one up to the last occurrence before `stop`, within the limits of one call."""
        search = self.search()
        with suppress(BudgetExceeded):
            for _ in range(MAX_COUNTED_PER_CALL):
                found = self.find_from(at_of(occurrence.at) + 1, stop, occurrence.index, search, counting=True)
                if found is None:
                    break
                occurrence = found
        return occurrence

    def search(self) -> Search:
        return SearchOfOne(self.series[0]) if len(self.series) == 1 else SearchOfSeveral(self.series)

    def find_from(self, at: int, stop: int, index: int, search: Search, *, counting: bool = False) -> Occurrence | None:
        """Return the first occurrence in [at, stop), or None. `index` is the number of the occurrence before it.

        If the search exceeds its budget before it reaches an RDATE, the result is the RDATE. Not while `counting`: one
        search then spends its budget on many occurrences, and those before the RDATE are still to be counted.
        """
        extra = self.extra_from(at, stop) if self.extra else None
        if extra is not None:
            # Search no further than the RDATE. A hit at its very instant takes its place, as COUNT counts the hit.
            stop = extra + 1
        excluded_in_a_row = 0
        while True:
            try:
                hit = search.next_from(at, stop) if self.count is None or index < self.count else None
            except BudgetExceeded:
                if extra is None or counting:
                    raise
                hit = None
            if extra is not None and (hit is None or extra < hit.at):
                return Occurrence(instant_of(extra), index if self.count is not None else index + 1)
            if hit is None:
                return None
            index += 1
            if not self.excluded.covers(hit):
                return Occurrence(instant_of(hit.at), index)
            # Excluded occurrences have a limit of their own. A rule that reaches it is refused; it has not ended.
            excluded_in_a_row += 1
            if excluded_in_a_row > MAX_EXCLUDED_IN_A_ROW:
                raise BadRule(self.field, f"EXDATE: takes out more than {MAX_EXCLUDED_IN_A_ROW} occurrences in a row")
            search.refund_last()
            at = hit.at + 1
            if self.count is None and len(self.series) == 1:
                at = max(at, self.excluded.excluded_until(hit))

    def extra_from(self, at: int, stop: int) -> int | None:
        position = bisect_left(self.extra, at)
        return self.extra[position] if position < len(self.extra) and self.extra[position] < stop else None


@dataclass(frozen=True, slots=True)
class IntervalRule:
    """Computes the occurrences of every_seconds: elapsed time from the start, exact to the microsecond."""

    start: datetime
    every: timedelta

    def first(self) -> Occurrence | None:
        return Occurrence(self.start, 1)

    def next_after(self, occurrence: Occurrence) -> Occurrence | None:
        return self.number(max(0, (occurrence.at - self.start) // self.every + 1))

    def is_cut_short(self, occurrence: Occurrence) -> bool:
        return False  # an interval needs no search

    def latest_before(self, occurrence: Occurrence, instant: datetime) -> Occurrence:
        latest = self.number((min(instant, END_INSTANT) - self.start - timedelta.resolution) // self.every)
        return latest if latest is not None and latest.at > occurrence.at else occurrence

    def number(self, steps: int) -> Occurrence | None:
        """Return the occurrence that many steps after the start, or None if it is after 2199."""
        if steps < 0 or self.every * steps >= END_INSTANT - self.start:
            return None
        return Occurrence(self.start + self.every * steps, steps + 1)


def occurrences(rule: Rule, after: datetime, limit: int, since: Occurrence | None = None) -> list[datetime]:
    """Return up to `limit` instants after `after`, for a preview.

    A rule with COUNT is counted from `since`, an occurrence that the caller knows, or from its first. If thousands of
    occurrences lie before `after`, the list is empty, because counting them would take too long.
    """
    current = since or rule.first()
    for _ in range(MAX_PREVIEW_CALLS):
        if current is None or current.at > after:
            break
        current = rule.next_after(rule.latest_before(current, after + datetime.resolution))
    else:
        return []
    found: list[datetime] = []
    while current is not None and len(found) < limit:
        found.append(current.at)
        current = rule.next_after(current)
    return found
