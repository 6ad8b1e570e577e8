"""Users and their events, as the rest of the application knows them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from uuid import UUID

BIRTHDAY = "BIRTHDAY"


@dataclass(frozen=True, slots=True)
class User:
    """What a user said about themselves. `dates` are by event type; that of BIRTHDAY is always there."""

    first_name: str
    last_name: str
    timezone: str
    dates: Mapping[str, date]


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a user: a schedule at Duebell, under this id for as long as the event exists."""

    id: UUID
    type: str
    marked: date  # the day that is remembered; of BIRTHDAY, the date of birth
    revision: int  # of the user, when Duebell was last asked about this event
    starts_on: date  # the first day that was asked for then
    greeted_on: date | None = None  # the last day on which there was a greeting


@dataclass(frozen=True, slots=True)
class StoredUser:
    id: UUID
    revision: int  # plus one with every change
    user: User
    events: tuple[Event, ...]
