"""ANNIVERSARY: for users who have given the application a day worth remembering."""

from examples.birthdays.event_types.event_type import EventType
from examples.birthdays.event_types.yearly import YEARLY
from examples.birthdays.people import User


def message(user: User) -> str:
    return f"Happy anniversary, {user.first_name}!"


EVENT_TYPE = EventType("ANNIVERSARY", message, YEARLY)
