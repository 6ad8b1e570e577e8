"""Workflow 5 of a birthday system: the race between an update and a greeting that is on its way."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import structlog

from examples.birthdays.event_types.yearly import first_from
from tests.birthdays.application import Home, birthdays, born, duebell, greeted, greetings_of, verdicts
from tests.birthdays.jobs import job_of
from tests.birthdays.users import Clock, Soon
from tests.support.blocked_writes import a_write_is_blocked, block_writes
from tests.support.delivery_rows import wait_for_deliveries
from tests.support.eventually import eventually
from tests.support.stores import Site


@dataclass(frozen=True, slots=True)
class Race:
    client: httpx.AsyncClient
    user: str
    soon: Soon


@asynccontextmanager
async def a_race(
    site: Site, home: Home, database: Any, changing: Callable[[Soon], dict[str, str]]
) -> AsyncIterator[Race]:
    """A birthday is due. The producer has claimed and published it, and stands still before its commit, when the change
    comes. Then the producer goes on, and delivery starts when the test likes.
    """
    soon = Soon.in_seconds(1)
    change = changing(soon)
    clock = Clock.before(soon)
    async with (
        birthdays(home, clock=clock, greeting_time=soon.greeting_time) as client,
        duebell(site, "consumer"),
        AsyncExitStack() as running,
    ):
        user = await born(client, soon.a_user())
        await job_of(database)
        clock.goes_on()
        async with block_writes(site, "before update") as lock_holder:
            await running.enter_async_context(duebell(site, "producer"))
            await eventually(lambda: a_write_is_blocked(lock_holder))
            answer = await client.put(f"/user/{user}", json=change)
            assert answer.status_code == 200, "it does not wait for the producer"
            assert change.items() <= answer.json()["user"].items()
            await verdicts(client, open=1)
        await job_of(database, revision=2)
        yield Race(client, user, soon)


async def test_a_greeting_that_is_on_its_way_has_the_old_data_and_the_next_one_the_new(
    site: Site, home: Home, database: Any
) -> None:
    async with a_race(site, home, database, lambda _: {"lastName": "King"}) as race:
        await verdicts(race.client, rescheduled=1)  # nothing has been heard of the old one yet
        with structlog.testing.capture_logs() as logs:
            async with duebell(site, "delivery"):
                [greeting] = await greeted(race.client, race.user)
                await verdicts(race.client, skipped=1)

                async def waits_for_next_year() -> bool:
                    job = await job_of(database, revision=2)
                    return bool(job["next_run_at"].year == race.soon.at.year + 1)

                await eventually(waits_for_next_year)
                await wait_for_deliveries(database, 1)
                assert greeting["message"] == "Hey, Ada Lovelace it's your birthday"
                assert [line["revision"] for line in logs if line["event"] == "skipped"] == [2]

                # A year passes: today becomes the same day of last year.
                await home.fetch("update greetings set occurs_on = occurs_on - 365")
                await database.execute("update jobs set next_run_at = now()")
                greetings = await greeted(race.client, race.user, times=2)
                assert greetings[0]["message"] == "Hey, Ada King it's your birthday"


async def test_moving_west_while_the_greeting_is_on_its_way_does_not_bring_a_second_one(
    site: Site, home: Home, database: Any
) -> None:
    """Where it is an hour earlier, the moment is still to come, on the same day."""
    async with a_race(site, home, database, lambda soon: {"timezone": soon.zone(hours_east=-1)}) as race:
        job = await job_of(database, revision=2)
        assert job["next_run_at"] == race.soon.at + timedelta(hours=1)
        async with duebell(site, "delivery"):
            await greeted(race.client, race.user)
            await verdicts(race.client, skipped=1)
            # The hour passes.
            await database.execute("update jobs set next_run_at = now()")
            await wait_for_deliveries(database, 2)
        assert len(await greetings_of(race.client, race.user)) == 1
        shown = (await race.client.get(f"/user/{race.user}")).json()["nextBirthdayEvent"]["localTime"]
        today = race.soon.local.date()
        assert shown.split("T")[0] == first_from(today, today + timedelta(days=1)).isoformat()
