"""BIRTHDAY: every user has one, on the day of their birth."""

from examples.birthdays.event_types.event_type import EventType
from examples.birthdays.event_types.yearly import YEARLY
from examples.birthdays.people import BIRTHDAY, User


def message(user: User) -> str:
    return f"Hey, {user.first_name} {user.last_name} it's your birthday"


EVENT_TYPE = EventType(BIRTHDAY, message, YEARLY)
