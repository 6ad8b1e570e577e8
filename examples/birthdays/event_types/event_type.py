"""What an event type is: a name, a message, and a recurrence, which says on which days a date comes round."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from examples.birthdays.people import User


@dataclass(frozen=True, slots=True)
class Recurrence:
    """One recurrence in two forms: as a rule for Duebell, which does the ringing, and as a function for this
    application, which shows the next day and chooses the first. A test compares the two.
    """

    rrule: Callable[[date], str]
    first_from: Callable[[date, date], date]  # (the date, a day): the first day it comes round, that day or later


@dataclass(frozen=True, slots=True)
class EventType:
    name: str
    message: Callable[[User], str]
    recurrence: Recurrence
