"""What a new or changed user means for their events: which begin, which are rescheduled, which end. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, time
from uuid import UUID, uuid4

from examples.birthdays.event_types import event_type
from examples.birthdays.occurrences import LocalTime, day_to_restart, next_day
from examples.birthdays.people import Event, StoredUser, User


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a decision depends on beside the user."""

    greeting_time: time
    now: datetime
    new_id: Callable[[], UUID] = uuid4


@dataclass(frozen=True, slots=True)
class Changes:
    begun: tuple[Event, ...] = ()
    rescheduled: tuple[Event, ...] = ()
    ended: tuple[Event, ...] = ()


def changes_of_a_new_user(user: User, given: Circumstances) -> Changes:
    return Changes(begun=tuple(_begin(kind, user, 1, given) for kind in sorted(user.dates)))


def changes_between(before: StoredUser, after: User, given: Circumstances) -> Changes:
    """Return what changes between two states of a user. An event that means the same as before is left alone. One that
    was removed and comes again is a new one, with an id of its own.
    """
    revision = before.revision + 1
    have = {event.type: event for event in before.events}
    new = sorted(after.dates.keys() - have.keys())
    return Changes(
        begun=tuple(_begin(kind, after, revision, given) for kind in new),
        rescheduled=tuple(
            _reschedule(event, before, after, given)
            for event in before.events
            if event.type in after.dates and _meaning(event.type, after) != _meaning(event.type, before.user)
        ),
        ended=tuple(event for event in before.events if event.type not in after.dates),
    )


def _begin(kind: str, user: User, revision: int, given: Circumstances) -> Event:
    local = LocalTime(user.timezone, given.greeting_time)
    starts_on = next_day(kind, user.dates[kind], local, given.now)
    return Event(given.new_id(), kind, user.dates[kind], revision, starts_on)


def _reschedule(event: Event, before: StoredUser, after: User, given: Circumstances) -> Event:
    was, becomes = (LocalTime(zone, given.greeting_time) for zone in (before.user.timezone, after.timezone))
    marked = after.dates[event.type]
    starts_on = day_to_restart(event, marked, was, becomes, given.now)
    return replace(event, marked=marked, revision=before.revision + 1, starts_on=starts_on)


def _meaning(kind: str, user: User) -> tuple[object, ...]:
    return (user.dates[kind], user.timezone, event_type(kind).message(user))
