"""Workflows 1 and 2 of a birthday system: a user is created with their first event, and greeted when it comes."""

from datetime import datetime
from typing import Any

from tests.birthdays.application import Home, Logins, birthdays, born, duebell, greeted, greetings_of
from tests.birthdays.jobs import job_of
from tests.birthdays.users import Clock, Soon, a_user
from tests.support.delivery_rows import wait_for_deliveries
from tests.support.eventually import eventually
from tests.support.services import running_consumer
from tests.support.stores import Site


async def test_a_new_user_is_answered_with_the_next_birthday_and_scheduled_for_it(
    site: Site, home: Home, logins: Logins, database: Any
) -> None:
    async with birthdays(home) as client, running_consumer(site):
        answer = await client.post("/user", json=a_user(dateOfBirth="1990-07-01", timezone="America/New_York"))
        assert answer.status_code == 201
        shown = answer.json()
        assert {**a_user(dateOfBirth="1990-07-01", timezone="America/New_York"), "otherDates": {}}.items() <= shown[
            "user"
        ].items()
        event = shown["nextBirthdayEvent"]
        assert event["localTime"].endswith("-07-01T09:00:00")
        assert event["utcTime"].endswith("-07-01T13:00:00Z")
        job = await job_of(database)
        assert job["next_run_at"] == datetime.fromisoformat(event["utcTime"])
        assert job["owner"] == "birthdays" or not logins.on_broker, "no other user may change it"
        assert (await client.get(f"/user/{shown['user']['id']}")).json() == shown
        await home.has("outbox", 0)


async def test_a_user_and_the_message_to_duebell_are_stored_together_or_not_at_all(home: Home) -> None:
    await home.fetch(
        """create function refuse() returns trigger language plpgsql as
           $$ begin raise exception 'no' using errcode = '57P03'; end $$"""
    )
    await home.fetch("create trigger refuse before insert on outbox for each row execute function refuse()")
    async with birthdays(home, ["api"]) as client:
        assert (await client.post("/user", json=a_user())).status_code == 503
        assert await home.count("users") == 0
        await home.fetch("drop trigger refuse on outbox")
        await born(client, a_user())
        assert (await home.count("users"), await home.count("outbox")) == (1, 1)


async def test_a_birthday_is_greeted_once_when_it_comes(site: Site, home: Home, database: Any) -> None:
    soon = Soon.in_seconds(2)
    clock = Clock.before(soon)
    async with birthdays(home, clock=clock, greeting_time=soon.greeting_time) as client, duebell(site):
        user = await born(client, soon.a_user())
        [greeting] = await greeted(client, user)
        assert greeting["message"] == "Hey, Ada Lovelace it's your birthday"
        assert datetime.fromisoformat(greeting["dueAt"]) == soon.at
        await wait_for_deliveries(database, 1)
        # Next year needs nothing: the rule continues.
        job = await job_of(database)
        assert job["status"] == "pending"
        assert job["next_run_at"].year == soon.at.year + 1
        clock.goes_on()
        shown = (await client.get(f"/user/{user}")).json()
        assert job["next_run_at"] == datetime.fromisoformat(shown["nextBirthdayEvent"]["utcTime"])


async def test_a_receiver_that_is_away_gets_the_greeting_when_it_is_back(site: Site, home: Home, database: Any) -> None:
    """And each part runs as well in a process of its own."""
    soon, port = Soon.in_seconds(1), home.settings().http_port
    url = f"http://127.0.0.1:{port}/webhook"
    an_api = birthdays(home, ["api"], clock=Clock.before(soon), greeting_time=soon.greeting_time, webhook_url=url)
    async with an_api as client, birthdays(home, ["relay"]), duebell(site):
        user = await born(client, soon.a_user())

        async def tried() -> bool:
            return bool(await database.fetchval("select max(retry_count) > 0 from deliveries"))

        await eventually(tried)
        assert await greetings_of(client, user) == []
        async with birthdays(home, ["receiver"], http_port=port):
            await greeted(client, user)
            await wait_for_deliveries(database, 1)


async def test_a_receiver_with_another_secret_refuses_and_sends_no_greeting(
    site: Site, home: Home, database: Any
) -> None:
    soon, other = Soon.in_seconds(1), "whsec_" + "b3RoZXIg" * 4
    an_app = birthdays(home, clock=Clock.before(soon), greeting_time=soon.greeting_time, webhook_secret=other)
    async with an_app as client, duebell(site):
        user = await born(client, soon.a_user())
        await wait_for_deliveries(database, 1, "FAILED")
        assert await database.fetchval("select failure_reason from deliveries") == "http_401"
        assert await greetings_of(client, user) == []
