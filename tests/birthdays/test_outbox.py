"""The relay: at least once, in order per user, however many there are and whenever they die."""

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import structlog

from stack.ports import free_port
from tests.birthdays.application import Home, birthdays, born, duebell
from tests.birthdays.jobs import job_of
from tests.birthdays.users import a_user
from tests.support.application import Application, an_application
from tests.support.eventually import eventually
from tests.support.services import service_process
from tests.support.stores import Site

STAND_STILL_BEFORE_THE_DELETE = (
    """create function stand_still() returns trigger language plpgsql as $$
       begin perform pg_advisory_xact_lock(77); return null; end $$""",
    "create trigger stand_still before delete on outbox for each statement execute function stand_still()",
)
WAITING = "select pid from pg_stat_activity where wait_event = 'advisory' and datname = current_database()"


async def said_to_duebell(app: Application, number: int) -> list[dict[str, Any]]:
    """What is in the inbox, in order."""
    inbox = await app.channel.get_queue(app.names.inbox)
    bodies: list[dict[str, Any]] = []

    async def look() -> bool:
        while message := await inbox.get(no_ack=True, fail=False):
            bodies.append(json.loads(message.body))
        assert len(bodies) >= number, f"{len(bodies)} of {number} so far"
        return True

    await eventually(look)
    return bodies


async def test_several_relays_keep_the_order_of_each_user(site: Site, home: Home) -> None:
    users, changes = 5, 12
    async with birthdays(home, ["api"]) as client:
        ids = [await born(client, a_user()) for _ in range(users)]
        for number in range(changes):
            await asyncio.gather(*(client.put(f"/user/{id_}", json={"lastName": f"No. {number}"}) for id_ in ids))
        for id_ in ids[1:]:
            await client.delete(f"/user/{id_}")
    async with an_application(site, listen_to=None) as app:
        async with birthdays(home, ["relay"]), birthdays(home, ["relay"]), birthdays(home, ["relay"]):
            await home.has("outbox", 0)
        said = await said_to_duebell(app, users * (1 + changes) + users - 1)
    by_event: dict[str, list[int | str]] = defaultdict(list)
    for content in said:
        by_event[content["id"]].append(content["revision"] if "topic" in content else "cancel")
    requests: list[int | str] = list(range(1, changes + 2))
    assert sorted(map(len, by_event.values())) == [changes + 1] + [changes + 2] * (users - 1)
    assert all(revisions in (requests, [*requests, "cancel"]) for revisions in by_event.values())


async def test_an_application_killed_between_confirm_and_commit_says_it_again_and_that_changes_nothing(
    site: Site, home: Home, database: Any, tmp_path: Path
) -> None:
    for statement in STAND_STILL_BEFORE_THE_DELETE:
        await home.fetch(statement)
    async with birthdays(home, ["api"]) as client:
        await born(client, a_user())
    async with an_application(site, listen_to=None) as app:
        await database.execute("select pg_advisory_lock(77)")
        environment = {**home.environment, "HTTP_PORT": str(free_port())}
        with service_process("examples.birthdays", environment, tmp_path) as process:

            async def stands_still() -> Any:
                assert process.is_running, process.log.read_text()
                return await database.fetchval(WAITING)

            backend = await eventually(stands_still)
            process.kill()
        # Postgres has not noticed, and would go on with the statement.
        await database.execute("select pg_terminate_backend($1)", backend)
        await database.execute("select pg_advisory_unlock(77)")
        assert await home.count("outbox") == 1, "nothing was forgotten"
        assert await app.count(site.names.inbox) == 1, "and it had been said"
        async with birthdays(home, ["relay"]):
            await home.has("outbox", 0)

        async def said_twice() -> bool:
            return await app.count(site.names.inbox) == 2

        await eventually(said_twice)
        with structlog.testing.capture_logs() as logs:
            async with birthdays(home, ["replies"]), duebell(site, "consumer"):

                async def both_answered() -> bool:
                    return len([line for line in logs if line["event"] in {"accepted", "duplicate"}]) == 2

                await eventually(both_answered)
        assert await database.fetchval("select count(*) from jobs") == 1


async def test_what_cannot_be_routed_stays_in_the_outbox_until_it_can(site: Site, home: Home, database: Any) -> None:
    async with an_application(site, listen_to=None) as app:
        inbox = await app.channel.get_queue(site.names.inbox)
        await inbox.unbind(app.commands, "#")
        with structlog.testing.capture_logs() as logs:
            async with birthdays(home) as client:
                await born(client, a_user())

                async def relay_waits() -> bool:
                    return any("were not confirmed" in line.get("problem", "") for line in logs)

                await eventually(relay_waits)
                assert await home.count("outbox") == 1
                await inbox.bind(app.commands, "#")
                async with duebell(site, "consumer"):
                    await job_of(database)
                    await home.has("outbox", 0)
