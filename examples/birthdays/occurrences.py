"""Which day comes next, and at which instant it is greeted. Pure.

The one hard question is where a changed schedule starts. Not simply after now: while Duebell is down, or has a greeting
in flight, today's may be due and not yet greeted. Were the new schedule to start next year, that greeting would be
lost; so it starts on the day that is still awaited. If that one was on its way after all, it comes a second time, and
the receiver, which greets an event once a day, drops it.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from examples.birthdays.event_types import event_type
from examples.birthdays.people import Event

# For so long after its moment a greeting is still awaited. Afterwards something went wrong for good, and a greeting
# months late would be worse than none.
AWAITED_FOR = timedelta(days=7)
_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LocalTime:
    """The moment of the greeting: nine in the morning in the user's time zone."""

    timezone: str
    at: time

    def instant_on(self, day: date) -> datetime:
        """Return the instant on a day. Where clocks jump over the time, it is later by the jump, as at Duebell: Python
        reads fold=0 in this way.
        """
        return datetime.combine(day, self.at, ZoneInfo(self.timezone)).astimezone(UTC)


def local_day(instant: datetime, timezone: str) -> date:
    return instant.astimezone(ZoneInfo(timezone)).date()


def next_day(kind: str, marked: date, local: LocalTime, now: datetime, greeted_on: date | None = None) -> date:
    """Return the first day whose moment is still to come, and that has not been greeted. A user who moves west on their
    birthday, after the greeting, has nine o'clock before them once more.
    """
    first_from = event_type(kind).recurrence.first_from
    day = first_from(marked, local_day(now, local.timezone))
    if local.instant_on(day) <= now:
        day = first_from(marked, day + _ONE_DAY)
    if greeted_on is not None and day <= greeted_on:
        day = first_from(marked, greeted_on + _ONE_DAY)
    return day


def awaited_day(event: Event) -> date:
    """Return the next day without a greeting, whether its moment has come or not."""
    start = event.starts_on
    if event.greeted_on is not None:
        start = max(start, event.greeted_on + _ONE_DAY)
    return event_type(event.type).recurrence.first_from(event.marked, start)


def day_to_restart(event: Event, marked: date, before: LocalTime, after: LocalTime, now: datetime) -> date:
    """Return the day on which the schedule of `event` starts with its new date and zone."""
    awaited = awaited_day(event)
    is_due = now - AWAITED_FOR < before.instant_on(awaited) <= now
    still_meant = event_type(event.type).recurrence.first_from(marked, awaited) == awaited
    if is_due and still_meant:
        return awaited
    return next_day(event.type, marked, after, now, event.greeted_on)
