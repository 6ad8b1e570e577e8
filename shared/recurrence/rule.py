"""A rule ready to be asked: the next ring after any ring, the last one before any moment.

A rule keeps no place of its own. All it needs is in the occurrence it is given, so an answer depends on nothing that
was asked before, in this process or another, and a rule can be shared by everyone who holds the same RuleSpec.
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

PASSED_OVER = 6_000
"""Occurrences in a row that EXDATE may take out."""

END_INSTANT = instant_of(END)

CALLS = 4
"""How often a rule with COUNT is asked to count on towards the moment before a preview is given up."""

WALK = 1_000
"""Occurrences that `latest_before` looks at in one call when it has to count them."""


class Occurrence(msgspec.Struct, frozen=True, gc=False):
    """One ring of a rule: its instant, in UTC, and its number, which is what COUNT counts.

    A rule without COUNT numbers its rings one by one as they are asked for. An RDATE does not count: it carries the
    number of the ring before it. An occurrence that EXDATE takes out does, so its number is missing.
    """

    at: datetime
    index: int


class Rule(Protocol):
    def first(self) -> Occurrence | None:
        """The first ring of all; None if there is none."""

    def next_after(self, occurrence: Occurrence) -> Occurrence | None:
        """The ring that follows, always later; None if the rule has ended."""

    def is_cut_short(self, occurrence: Occurrence) -> bool:
        """Whether nothing follows only because nothing was found within reach of the search."""

    def latest_before(self, occurrence: Occurrence, instant: datetime) -> Occurrence:
        """The last ring before the instant, or the given one if none follows it. A rule with COUNT has to count its
        rings one by one, and a very sparse one is hard to search: it may stop on the way, and can be asked again with
        what it gave.
        """


@dataclass(frozen=True, slots=True)
class CalendarRule:
    """A rule of RRULE, RDATE and EXDATE lines, or of cron."""

    field: str
    series: tuple[Series, ...]
    count: int | None = None
    extra: tuple[int, ...] = ()
    """RDATE: rings of their own, ascending."""
    excluded: Excluded = NOTHING_EXCLUDED

    def first(self) -> Occurrence | None:
        try:
            return self.ring_from(BEGIN, END, 0, self.search())
        except BudgetExceeded:
            raise BadRule(self.field, f"{self.field}: no occurrence found within reach of the search") from None

    def next_after(self, occurrence: Occurrence) -> Occurrence | None:
        try:
            return self.ring_from(at_of(occurrence.at) + 1, END, occurrence.index, self.search())
        except BudgetExceeded:
            return None

    def is_cut_short(self, occurrence: Occurrence) -> bool:
        try:
            self.ring_from(at_of(occurrence.at) + 1, END, occurrence.index, self.search())
        except BudgetExceeded:
            return True
        return False

    def latest_before(self, occurrence: Occurrence, instant: datetime) -> Occurrence:
        stop = min(END, at_of(instant + SECOND - timedelta.resolution))
        return self.search_back(occurrence, stop) if self.count is None else self.walk_on(occurrence, stop)

    def search_back(self, occurrence: Occurrence, stop: int) -> Occurrence:
        """Halves the time between the last ring known and the moment asked for, until nothing is left between."""
        latest, low, high = occurrence, at_of(occurrence.at) + 1, stop
        search = self.search()
        with suppress(BudgetExceeded):
            while low < high:
                middle = (low + high) // 2
                search.start_anew()
                found = self.ring_from(middle, high, occurrence.index, search)
                if found is None:
                    high = middle
                else:
                    latest, low = found, at_of(found.at) + 1
        return latest

    def walk_on(self, occurrence: Occurrence, stop: int) -> Occurrence:
        search = self.search()
        with suppress(BudgetExceeded):
            for _ in range(WALK):
                found = self.ring_from(at_of(occurrence.at) + 1, stop, occurrence.index, search, counting=True)
                if found is None:
                    break
                occurrence = found
        return occurrence

    def search(self) -> Search:
        return SearchOfOne(self.series[0]) if len(self.series) == 1 else SearchOfSeveral(self.series)

    def ring_from(self, at: int, stop: int, index: int, search: Search, *, counting: bool = False) -> Occurrence | None:
        """The first ring in [at, stop), `index` being the number reached before it.

        An RDATE is not lost if the search for what comes before it runs out. But who is counting ring after ring with
        the same work has spent it on the way: those before the RDATE are still to be counted.
        """
        extra = self.extra_from(at, stop) if self.extra else None
        if extra is not None:
            # Nobody needs to look further; but what rings at the same instant counts, and an RDATE does not.
            stop = extra + 1
        passed_over = 0
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
            # A rule whose rings are taken out is alive: they have a bound of their own, and reaching it is not its end.
            passed_over += 1
            if passed_over > PASSED_OVER:
                raise BadRule(self.field, f"EXDATE: takes out more than {PASSED_OVER} occurrences in a row")
            search.pass_over()
            at = hit.at + 1
            if self.count is None and len(self.series) == 1:
                at = max(at, self.excluded.silent_until(hit))

    def extra_from(self, at: int, stop: int) -> int | None:
        position = bisect_left(self.extra, at)
        return self.extra[position] if position < len(self.extra) and self.extra[position] < stop else None


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


def occurrences(rule: Rule, after: datetime, limit: int, since: Occurrence | None = None) -> list[datetime]:
    """Up to `limit` instants strictly after `after`.

    A rule with COUNT is counted from `since`, an occurrence already known, or from its first; if that is some thousands
    of occurrences before `after`, the list is empty rather than the caller held up.
    """
    current = since or rule.first()
    for _ in range(CALLS):
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
