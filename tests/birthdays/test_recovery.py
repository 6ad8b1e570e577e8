"""Workflow 4 of a birthday system: Duebell was down, and every user gets their greeting."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from tests.birthdays.application import Home, birthdays, born, duebell, greeted, greetings_of, verdicts
from tests.birthdays.users import Clock, Soon, a_user, born_on
from tests.support.delivery_rows import wait_for_deliveries
from tests.support.eventually import eventually
from tests.support.services import running_consumer
from tests.support.stores import Site

ZONES = ("Pacific/Kiritimati", "Asia/Tokyo", "Asia/Kathmandu", "Europe/Berlin", "UTC", "America/New_York")


async def test_after_a_day_of_downtime_every_user_is_greeted_once_and_late_greetings_are_logged(
    site: Site, home: Home, database: Any
) -> None:
    """Users who signed up before; then nothing of Duebell ran while 24 hours of birthdays came and went."""
    now = datetime.now(UTC)
    signed_up = now - timedelta(hours=30)

    async with birthdays(home, clock=Clock(signed_up)) as client:
        due: dict[str, datetime] = {}
        for zone in ZONES:
            for day in days_between(signed_up, now, zone):
                user = await born(client, a_user(timezone=zone, dateOfBirth=born_on(day)))
                due[user] = datetime(day.year, day.month, day.day, 9, tzinfo=ZoneInfo(zone))
        not_yet = await born(client, a_user(dateOfBirth=born_on((now + timedelta(days=3)).date())))
        async with running_consumer(site):  # the schedules were known before it all went down
            await home.has("outbox", 0)

            async def all_known() -> bool:
                return bool(await database.fetchval("select count(*) from jobs") == len(due) + 1)

            await eventually(all_known)
        with structlog.testing.capture_logs() as logs:
            async with duebell(site):
                await home.has("greetings", len(due))
                await wait_for_deliveries(database, len(due))
        assert len(due) >= len(ZONES)
        for user, moment in due.items():
            [greeting] = await greetings_of(client, user)
            assert datetime.fromisoformat(greeting["dueAt"]) == moment
        assert await greetings_of(client, not_yet) == []
        lines = [line for line in logs if line["event"] == "greeted_late"]
        lateness = [(datetime.now(UTC) - moment).total_seconds() / 60 for moment in due.values()]
        assert sum(late > 62 for late in lateness) <= len(lines) <= sum(late > 60 for late in lateness)
        assert all(line["late_minutes"] >= 60 for line in lines)
        assert [line for line in logs if line["event"] == "recovery"]


def days_between(start: datetime, end: datetime, zone: str) -> list[date]:
    """On which nine o'clock in the zone was after `start` and before `end`."""
    days = [start.astimezone(ZoneInfo(zone)).date() + timedelta(days=n) for n in range(4)]
    return [d for d in days if start < datetime(d.year, d.month, d.day, 9, tzinfo=ZoneInfo(zone)) <= end]


async def test_a_change_while_duebell_is_down_does_not_cost_the_greeting_that_is_due(site: Site, home: Home) -> None:
    soon = Soon.in_seconds(1)
    clock = Clock.before(soon)
    async with birthdays(home, clock=clock, greeting_time=soon.greeting_time) as client:
        async with running_consumer(site):
            user, mover = await born(client, soon.a_user()), await born(client, soon.a_user())
            await home.has("outbox", 0)

        async def is_past() -> bool:
            return datetime.now(UTC) > soon.at

        await eventually(is_past)
        clock.goes_on()
        await client.put(f"/user/{user}", json={"lastName": "King"})
        await client.put(f"/user/{mover}", json={"timezone": soon.zone(hours_east=1)})
        async with duebell(site, "consumer"):
            await verdicts(client, rescheduled=2)
        async with duebell(site):
            [greeting] = await greeted(client, user)
            assert greeting["message"] == "Hey, Ada King it's your birthday"
            await greeted(client, mover)
