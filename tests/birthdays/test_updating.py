"""Workflow 3 of a birthday system: users change and go, and what Duebell makes of it comes later."""

from datetime import datetime, timedelta
from typing import Any

import structlog

from tests.birthdays.application import Home, birthdays, born, duebell, greeted, verdicts
from tests.birthdays.jobs import job_of
from tests.birthdays.users import Clock, Soon, a_user
from tests.support.delivery_rows import wait_for_deliveries
from tests.support.eventually import eventually
from tests.support.services import running_consumer
from tests.support.stores import Site


async def test_an_update_is_answered_at_once_and_its_verdict_comes_later(site: Site, home: Home, database: Any) -> None:
    async with birthdays(home) as client:
        async with running_consumer(site):
            user = await born(client, a_user(dateOfBirth="1990-07-01"))
            before = await job_of(database)
        # Duebell is not running, and no request waits for it.
        answer = await client.put(f"/user/{user}", json={"timezone": "Asia/Tokyo"})
        assert answer.status_code == 200
        assert answer.json()["user"]["timezone"] == "Asia/Tokyo"
        assert answer.json()["user"]["firstName"] == "Ada", "what is not named stays"
        await verdicts(client, open=1)
        async with running_consumer(site):
            job = await job_of(database, revision=2)
            await verdicts(client, rescheduled=1)
        assert job["next_run_at"] == before["next_run_at"] - timedelta(hours=8)
        assert job["next_run_at"] == datetime.fromisoformat(answer.json()["nextBirthdayEvent"]["utcTime"])


async def test_a_new_name_reaches_the_next_greeting(site: Site, home: Home) -> None:
    soon = Soon.in_seconds(1)
    async with birthdays(home, clock=Clock.before(soon), greeting_time=soon.greeting_time) as client:
        async with running_consumer(site):
            user = await born(client, soon.a_user())
            await client.put(f"/user/{user}", json={"lastName": "King"})
            await verdicts(client, rescheduled=1)
        async with duebell(site):
            [greeting] = await greeted(client, user)
        assert greeting["message"] == "Hey, Ada King it's your birthday"


async def test_an_update_that_changes_nothing_says_nothing(home: Home) -> None:
    async with birthdays(home, ["api"]) as client:
        user = await born(client, a_user(otherDates={"ANNIVERSARY": "2015-06-01"}))
        same = await client.put(f"/user/{user}", json=a_user(otherDates={"ANNIVERSARY": "2015-06-01"}))
        assert same.status_code == 200
        assert await home.count("outbox") == 2, "those of the creation"
        # A last name is not in the message of an anniversary.
        await client.put(f"/user/{user}", json={"lastName": "King"})
        assert [row["body"] for row in await home.fetch("select body->>'topic' as body from outbox order by id")] == [
            "birthdays.anniversary",
            "birthdays.birthday",
            "birthdays.birthday",
        ]
        assert [row["revision"] for row in await home.fetch("select revision from users")] == [2]


async def test_other_events_come_and_go(site: Site, home: Home, database: Any) -> None:
    async with birthdays(home) as client, running_consumer(site):
        user = await born(client, a_user())
        await client.put(f"/user/{user}", json={"otherDates": {"ANNIVERSARY": "2015-06-01"}})
        await client.put(f"/user/{user}", json={"otherDates": {}})
        shown = (await client.put(f"/user/{user}", json={"otherDates": {"ANNIVERSARY": "2016-02-29"}})).json()
        assert [event["type"] for event in shown["otherEvents"]] == ["ANNIVERSARY"]

        async def settled() -> bool:
            rows = await database.fetch("select topic, status, count(*) from jobs group by 1, 2 order by 1, 2")
            assert [tuple(row) for row in rows] == [
                ("birthdays.anniversary", "cancelled", 1),
                ("birthdays.anniversary", "pending", 1),
                ("birthdays.birthday", "pending", 1),
            ]
            return True

        await eventually(settled)


async def test_a_user_who_is_deleted_is_cancelled_removed_and_never_greeted(
    site: Site, home: Home, database: Any
) -> None:
    soon = Soon.in_seconds(1)
    at_noon = birthdays(home, clock=Clock.before(soon), greeting_time=soon.greeting_time)
    async with at_noon as client, duebell(site, "consumer", "producer"):
        gone, user = await born(client, a_user()), await born(client, soon.a_user())
        assert (await client.delete(f"/user/{gone}")).status_code == 204
        assert (await client.get(f"/user/{gone}")).status_code == 404
        assert (await client.delete(f"/user/{gone}")).status_code == 404

        async def rang() -> bool:
            statuses = await database.fetch("select status from jobs where sequence > 0 or status = 'cancelled'")
            return len(statuses) == 2

        await eventually(rang)
        # This one's greeting is on its way already.
        assert (await client.delete(f"/user/{user}")).status_code == 204
        with structlog.testing.capture_logs() as logs:
            async with duebell(site, "delivery"):
                await wait_for_deliveries(database, 1)
        assert [line["reason"] for line in logs if line["event"] in {"greeted", "no_effect"}] == ["gone"]
        for table in ("users", "events", "greetings"):
            assert await home.count(table) == 0, table
