"""The bodies of the HTTP API, as they come in and go out."""

import re
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Annotated, Self
from uuid import UUID
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema
from pydantic.alias_generators import to_camel

from examples.birthdays.event_types import OPTIONAL_TYPES, event_type
from examples.birthdays.greetings import Greeting
from examples.birthdays.occurrences import LocalTime, next_day
from examples.birthdays.people import BIRTHDAY, Event, StoredUser, User

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@cache
def _timezones() -> frozenset[str]:
    return frozenset(name for name in available_timezones() if not name.startswith("localtime"))


def _a_timezone(name: str) -> str:
    if name not in _timezones():
        raise ValueError("is not an IANA time zone, such as Europe/Berlin")
    return name


def _a_date(value: object) -> date:
    """Read a date from text in the one format. Otherwise numbers would be taken for days since 1970, and date-times for
    dates.
    """
    try:
        if isinstance(value, str) and _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("is not a date, such as 1990-02-28")


def _optional_type(name: str) -> str:
    if name == BIRTHDAY:
        raise ValueError("is given as dateOfBirth")
    return event_type(name).name


# A NUL cannot be stored as text.
Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100, pattern=r"^[^\x00]+$")]
Timezone = Annotated[
    str,
    AfterValidator(_a_timezone),
    WithJsonSchema({"type": "string", "format": "iana-timezone", "examples": ["Europe/Berlin"]}),
]
Day = Annotated[date, BeforeValidator(_a_date), WithJsonSchema({"type": "string", "format": "date"})]
Dates = Annotated[
    dict[Annotated[str, AfterValidator(_optional_type)], Day],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {name: {"type": "string", "format": "date"} for name in OPTIONAL_TYPES},
            "additionalProperties": False,
        }
    ),
]


class _Body(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", validate_by_name=True)


class NewUser(_Body):
    first_name: Name
    last_name: Name
    date_of_birth: Day = Field(description="Not in the future.")
    timezone: Timezone
    other_dates: Dates = Field(default_factory=dict, description="Other events, by type.")

    def to_user(self) -> User:
        return User(self.first_name, self.last_name, self.timezone, {**self.other_dates, BIRTHDAY: self.date_of_birth})


class UserChanges(_Body):
    """The fields of a user that change. A missing field stays as it is: the defaults say that it may be missing."""

    first_name: Name = Field(default_factory=str)
    last_name: Name = Field(default_factory=str)
    date_of_birth: Day = Field(default_factory=lambda: date.min, description="Not in the future.")
    timezone: Timezone = Field(default_factory=str)
    other_dates: Dates = Field(default_factory=dict, description="All of them: those that are missing end.")

    def applied_to(self, user: User) -> User:
        before = ShownUser.fields_of(user)
        return NewUser.model_construct(
            **{**before, **{name: getattr(self, name) for name in self.model_fields_set}}
        ).to_user()


class ShownUser(_Body):
    id: UUID
    first_name: str
    last_name: str
    date_of_birth: date
    timezone: str
    other_dates: dict[str, date]

    @staticmethod
    def fields_of(user: User) -> dict[str, object]:
        return {
            "first_name": user.first_name,
            "last_name": user.last_name,
            "date_of_birth": user.dates[BIRTHDAY],
            "timezone": user.timezone,
            "other_dates": {kind: day for kind, day in user.dates.items() if kind != BIRTHDAY},
        }


class ShownEvent(_Body):
    type: str
    local_time: str = Field(examples=["2027-02-28T09:00:00"])
    timezone: str
    utc_time: str = Field(examples=["2027-02-28T08:00:00Z"])

    @classmethod
    def of(cls, event: Event, timezone: str, at: time, now: datetime) -> Self:
        day = next_day(event.type, event.marked, LocalTime(timezone, at), now, event.greeted_on)
        instant = LocalTime(timezone, at).instant_on(day)
        return cls(
            type=event.type,
            local_time=datetime.combine(day, at).isoformat(),
            timezone=timezone,
            utc_time=instant.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        )


class Profile(_Body):
    user: ShownUser
    next_birthday_event: ShownEvent
    other_events: list[ShownEvent]

    @classmethod
    def of(cls, stored: StoredUser, at: time, now: datetime) -> Self:
        shown = {event.type: ShownEvent.of(event, stored.user.timezone, at, now) for event in stored.events}
        return cls(
            user=ShownUser.model_validate({"id": stored.id, **ShownUser.fields_of(stored.user)}),
            next_birthday_event=shown.pop(BIRTHDAY),
            other_events=list(shown.values()),
        )


class ShownGreeting(_Body):
    type: str
    occurs_on: date
    message: str
    idempotency_key: str
    due_at: datetime
    greeted_at: datetime

    @classmethod
    def of(cls, greeting: Greeting) -> Self:
        return cls.model_validate(greeting, from_attributes=True)


class Verdicts(_Body):
    """Changes of schedules in the last 7 days, by what became of them."""

    rescheduled: int
    skipped: int
    open: int
