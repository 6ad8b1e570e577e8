"""The lines of one rule searched together: the nearest ring of any of them, and none of them at the cost of another.

Every RRULE has a bound on work of its own. One that reaches it has no ring as far as this answer is concerned, and the
others ring on; only where nothing else is found it is said that the search ran out. So that a line which finds nothing
for years does not spend its whole bound on every ring of a line beside it, it is looked at a little first, and further
only up to the nearest ring that the others have.
"""

from typing import Protocol

from shared.recurrence.arithmetic import BEGIN, STEPS, BudgetExceeded, SearchBudget
from shared.recurrence.series import Hit, Series, closer

ROUNDS = (100, 1_000, STEPS)
"""Steps that a line may take before the others get their turn: what is near is found before anyone looks far."""

CHEAP_STEPS = 4
"""What finding the next ring costs as a rule; a search that needs more pays for it."""


class Search(Protocol):
    """The search for one ring, or for several that share its budget."""

    def next_from(self, at: int, stop: int) -> Hit | None:
        """The first ring in [at, stop); BudgetExceeded if that could not be found out."""

    def pass_over(self) -> None:
        """What was found last is taken out by EXDATE. Finding it costs nothing, unless it was hard to find."""

    def start_anew(self) -> None:
        """Forgets what is ahead, for a search that begins elsewhere; what was spent remains spent."""


class SearchOfOne:
    """A single line: all that most rules have."""

    __slots__ = ("before", "budget", "series")

    def __init__(self, series: Series) -> None:
        self.series, self.budget = series, SearchBudget()
        self.before = STEPS

    def next_from(self, at: int, stop: int) -> Hit | None:
        self.before = self.budget.left
        return self.series.next_from(at, stop, self.budget)

    def pass_over(self) -> None:
        self.budget.give_back(min(self.before - self.budget.left, CHEAP_STEPS))

    def start_anew(self) -> None:
        """There is nothing to forget."""


class Line:
    """One series of several, and what this search knows of it."""

    __slots__ = ("before", "budget", "clear_until", "hit", "series", "tries")

    def __init__(self, series: Series) -> None:
        self.series, self.budget = series, SearchBudget()
        self.before = STEPS
        self.hit: Hit | None = None
        self.clear_until = BEGIN
        """Nothing that is still ahead rings before this."""
        self.tries = 0
        """Rounds that were too short. Each is tried once, so what they cost is not counted."""

    def leave_behind(self, at: int) -> None:
        self.before = self.budget.left
        if self.hit is not None and self.hit.at < at:
            self.hit = None

    def is_open(self, stop: int) -> bool:
        """Whether it may ring before this, for all that is known."""
        return self.hit is None and self.clear_until < stop

    def look(self, at: int, stop: int) -> None:
        """Looks for the first ring in [at, stop) as far as its round allows."""
        allowed = min(ROUNDS[self.tries], self.budget.left)
        budget = SearchBudget(allowed)
        try:
            self.hit = self.series.next_from(max(at, self.clear_until), stop, budget)
        except BudgetExceeded:
            if self.tries < len(ROUNDS) - 1:
                self.tries += 1
            else:
                self.budget.left = 0
        else:
            self.budget.left -= allowed - budget.left
            self.clear_until = stop if self.hit is None else self.hit.at


class SearchOfSeveral:
    """Up to four lines, each with its own budget."""

    __slots__ = ("lines",)

    def __init__(self, series: tuple[Series, ...]) -> None:
        self.lines = tuple(Line(one) for one in series)

    def next_from(self, at: int, stop: int) -> Hit | None:
        hard = False
        for line in self.lines:
            line.leave_behind(at)
            if line.tries == 0 and line.is_open(stop):
                # Not held back by the others: what it finds far ahead is kept for later.
                line.look(at, stop)
            hard = hard or line.tries > 0
        if hard:
            self.look_further(at, stop)
        return self.nearest()

    def look_further(self, at: int, stop: int) -> None:
        """The hard lines, in rounds, and none of them further than it must."""
        for tries in range(1, len(ROUNDS)):
            for line in self.lines:
                if line.tries == tries and line.is_open(bound := self.nearest_or(stop)):
                    line.look(at, bound)
        if self.nearest() is None and any(line.is_open(stop) for line in self.lines):
            raise BudgetExceeded

    def nearest(self) -> Hit | None:
        found = None
        for line in self.lines:
            found = found if line.hit is None else closer(found, line.hit)
        return found

    def nearest_or(self, stop: int) -> int:
        """Where looking is of no more use. At the very instant of the nearest it is: two that meet ring once."""
        nearest = min((line.hit.at for line in self.lines if line.hit is not None), default=stop)
        return min(stop, nearest + 1)

    def pass_over(self) -> None:
        for line in self.lines:
            if line.budget.left:
                line.budget.give_back(min(line.before - line.budget.left, CHEAP_STEPS))

    def start_anew(self) -> None:
        for line in self.lines:
            line.hit, line.clear_until = None, BEGIN
