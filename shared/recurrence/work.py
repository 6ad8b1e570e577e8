"""A bound on searching: so many steps and no more, whatever the rule, so that no rule can hold an event loop."""

STEPS = 10_000
"""Steps of one line in one search, each of one or two microseconds: centuries of empty months fit in, and the four
lines that a rule may have take less than a tenth of a second together."""


class OutOfWork(Exception):
    """The search has used up its steps."""


class Work:
    """The steps one search may still take."""

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def give_back(self, steps: int) -> None:
        self.left += steps

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise OutOfWork
