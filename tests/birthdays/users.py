"""Users with one call, as the API takes them, and birthdays that are due when a test wants them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from examples.birthdays.database import database_now


def a_user(**overrides: Any) -> dict[str, Any]:
    return {
        "firstName": "Ada",
        "lastName": "Lovelace",
        "dateOfBirth": "1990-12-10",
        "timezone": "Europe/London",
        **overrides,
    }


def born_on(day: date) -> str:
    """1988 was a leap year, so it has every day."""
    return day.replace(year=1988).isoformat()


@dataclass(frozen=True, slots=True)
class Soon:
    """A birthday a moment ahead, in a zone where it is about noon: so that an hour more or less is the same day."""

    at: datetime

    @classmethod
    def in_seconds(cls, seconds: float) -> "Soon":
        return cls((datetime.now(UTC) + timedelta(seconds=seconds + 1)).replace(microsecond=0))

    def zone(self, hours_east: int = 0) -> str:
        hours = 12 - self.at.hour + hours_east
        return f"Etc/GMT{-hours:+d}" if hours else "Etc/GMT"

    @property
    def local(self) -> datetime:
        return self.at.astimezone(ZoneInfo(self.zone()))

    @property
    def greeting_time(self) -> time:
        return self.local.time()

    def a_user(self, **overrides: Any) -> dict[str, Any]:
        return a_user(**{"dateOfBirth": born_on(self.local.date()), "timezone": self.zone(), **overrides})


@dataclass(slots=True)
class Clock:
    """The application's, for as long as a test holds it; then Postgres' own again."""

    held_at: datetime | None = None

    async def __call__(self, connection: Any) -> datetime:
        return self.held_at or await database_now(connection)

    @classmethod
    def before(cls, soon: Soon) -> "Clock":
        """However long a test takes to create its users, their birthday is still to come."""
        return cls(soon.at - timedelta(minutes=1))

    def goes_on(self) -> None:
        self.held_at = None
