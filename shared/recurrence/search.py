"""Searches the RRULE lines of one rule together, for the nearest occurrence of any of them.

Every line has its own search budget. A line that exceeds it counts as having no occurrence, and the others go on; only
if none of them finds anything, the search raises BudgetExceeded. A line that finds nothing for years must not spend its
whole budget on each occurrence of another line. So every line is first searched for a few steps, and further only up to
the nearest occurrence that the others have found.
"""

from typing import Protocol

from shared.recurrence.arithmetic import BEGIN, MAX_STEPS, BudgetExceeded, SearchBudget
from shared.recurrence.series import Hit, Series, closer

# How many steps a line may take in each round before it is the turn of the other lines.
ROUND_STEPS = (100, 1_000, MAX_STEPS)

# Most searches for the next occurrence take no more than these steps.
REFUNDED_STEPS = 4


class Search(Protocol):
    """A search for one occurrence, or for several in a row that share its budget."""

    def next_from(self, at: int, stop: int) -> Hit | None:
        """Return the first hit in [at, stop), or None. Raises BudgetExceeded if the budget does not suffice."""

    def refund_last(self) -> None:
        """Give back the steps of the last hit, up to REFUNDED_STEPS: EXDATE excludes it."""

    def restart(self) -> None:
        """Forget the hits found ahead, so that the search can go on from another place. The budget stays as it is."""


class SearchOfOne:
    """Searches a rule with one line, as most rules are."""

    __slots__ = ("before", "budget", "series")

    def __init__(self, series: Series) -> None:
        self.series, self.budget = series, SearchBudget()
        self.before = MAX_STEPS

    def next_from(self, at: int, stop: int) -> Hit | None:
        self.before = self.budget.left
        return self.series.next_from(at, stop, self.budget)

    def refund_last(self) -> None:
        self.budget.refund(min(self.before - self.budget.left, REFUNDED_STEPS))

    def restart(self) -> None:
        """Do nothing: this search remembers no hits."""


class LineSearch:
    """Searches one line among several. It has its own budget, and keeps the hit that it has found ahead."""

    __slots__ = ("before", "budget", "hit", "searched_until", "series", "tries")

    def __init__(self, series: Series) -> None:
        self.series, self.budget = series, SearchBudget()
        self.before = MAX_STEPS
        self.hit: Hit | None = None
        self.searched_until = BEGIN  # the line has no further hit before this
        self.tries = 0  # rounds that were too short; each is tried once, so their steps do not count

    def forget_before(self, at: int) -> None:
        self.before = self.budget.left
        if self.hit is not None and self.hit.at < at:
            self.hit = None

    def may_have_hit(self, stop: int) -> bool:
        """Return whether the line may have a hit before `stop` that is not found yet."""
        return self.hit is None and self.searched_until < stop

    def search_round(self, at: int, stop: int) -> None:
        """Search for the first hit in [at, stop), with the steps that the current round allows."""
        allowed = min(ROUND_STEPS[self.tries], self.budget.left)
        budget = SearchBudget(allowed)
        try:
            self.hit = self.series.next_from(max(at, self.searched_until), stop, budget)
        except BudgetExceeded:
            if self.tries < len(ROUND_STEPS) - 1:
                self.tries += 1
            else:
                self.budget.left = 0
        else:
            self.budget.left -= allowed - budget.left
            self.searched_until = stop if self.hit is None else self.hit.at


class SearchOfSeveral:
    """Searches a rule with two to four lines."""

    __slots__ = ("lines",)

    def __init__(self, series: tuple[Series, ...]) -> None:
        self.lines = tuple(LineSearch(one) for one in series)

    def next_from(self, at: int, stop: int) -> Hit | None:
        hard = False
        for line in self.lines:
            line.forget_before(at)
            if line.tries == 0 and line.may_have_hit(stop):
                # An easy line may search as far as `stop`: it keeps a hit far ahead for later calls.
                line.search_round(at, stop)
            hard = hard or line.tries > 0
        if hard:
            self.search_hard_lines(at, stop)
        return self.nearest()

    def search_hard_lines(self, at: int, stop: int) -> None:
        """Search the lines that the first round was too short for, in rounds, and only up to the nearest hit."""
        for tries in range(1, len(ROUND_STEPS)):
            for line in self.lines:
                if line.tries == tries and line.may_have_hit(bound := self.search_bound(stop)):
                    line.search_round(at, bound)
        if self.nearest() is None and any(line.may_have_hit(stop) for line in self.lines):
            raise BudgetExceeded

    def nearest(self) -> Hit | None:
        found = None
        for line in self.lines:
            found = found if line.hit is None else closer(found, line.hit)
        return found

    def search_bound(self, stop: int) -> int:
        """Return the end of the useful range: just after the nearest hit, as hits of one instant are one occurrence."""
        nearest = min((line.hit.at for line in self.lines if line.hit is not None), default=stop)
        return min(stop, nearest + 1)

    def refund_last(self) -> None:
        for line in self.lines:
            if line.budget.left:
                line.budget.refund(min(line.before - line.budget.left, REFUNDED_STEPS))

    def restart(self) -> None:
        for line in self.lines:
            line.hit, line.searched_until = None, BEGIN
