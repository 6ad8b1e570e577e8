"""Commands in any order, repeated, and to several consumers at the same time leave the same jobs behind."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import permutations
from typing import Any

import asyncpg

from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import insert_due, read_job, wait_for_status
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site

Command = tuple[str, dict[str, Any]]


def request(revision: int) -> Callable[[str], Command]:
    return lambda job_id: ("schedule.request", a_request(id=job_id, revision=revision, payload=revision))


def cancel(job_id: str) -> Command:
    return "schedule.cancel", {"id": job_id, "revision": 2}


async def test_every_order_of_request_reschedule_and_cancel_over_two_consumers_ends_the_same(
    site: Site, app: Application, database: Any
) -> None:
    """Each consumer takes one command at a time, so that consecutive commands go to different consumers."""
    expected = {}
    async with AsyncExitStack() as consumers:
        for _ in range(2):
            await consumers.enter_async_context(running_consumer(site, batch_size=1))
        for kind, steps, end in (
            ("cancelled", (request(1), request(2), cancel), ("cancelled", None)),
            ("begun-again", (request(2), cancel, request(3)), ("pending", "3")),
            ("revised", (request(1), request(2), request(3)), ("pending", "3")),
        ):
            for number, order in enumerate(permutations(steps)):
                job_id = f"{kind}-{number}"
                expected[job_id] = end
                for step in order:
                    key, content = step(job_id)
                    await app.send(content, key=key)

        async def ended_so() -> bool:
            rows = await database.fetch("select id, status, payload from jobs order by id")
            seen = {row["id"]: (row["status"], row["payload"]) for row in rows}
            assert seen.keys() == expected.keys()
            for job_id, (status, payload) in expected.items():
                assert seen[job_id][0] == status, job_id
                assert payload is None or seen[job_id][1] == payload, job_id
            assert await app.count(site.names.inbox) == 0
            return True

        await eventually(ended_so)
    assert await app.count(site.names.parked) == 0


async def test_every_command_sent_three_times_has_the_effect_of_one(
    site: Site, app: Application, database: Any
) -> None:
    """The command is repeated before the job is stored, while it is pending and after it is done. The job fires once,
    and an ended job stays ended.
    """
    fires = a_request(id="fires", at=in_seconds(0.5))
    async with running_consumer(site), running_consumer(site), running_producer(site):
        for _ in range(3):
            await app.ask(fires)
            await app.ask({"id": "doomed"}, key="schedule.cancel")
        for _ in range(3):
            await app.ask(a_request(id="doomed", at=in_seconds(0)))
        await app.hears(1)
        done = await wait_for_status(database, "fires", "done")
        for _ in range(3):
            assert (await app.ask(fires))["outcome"] in {"duplicate", "rejected"}
        await app.ask(a_request(id="last", at=in_seconds(0)))
        await app.hears(2)
        assert await read_job(database, "fires") == done
        assert (await read_job(database, "doomed"))["status"] == "cancelled"
    assert [event.content["id"] for event in app.heard] == ["fires", "last"]


async def test_batches_in_opposite_orders_at_the_same_time_do_not_deadlock(
    site: Site, app: Application, database: Any
) -> None:
    """Two consumers reschedule the same jobs again and again, in opposite orders. The test holds a row in the middle
    for a moment, so that both consumers hold locks while they wait.
    """
    ids = [f"job-{number:06}" for number in range(1, 101)]
    await insert_due(database, 100, late=timedelta(days=-1))
    deadlocks = "select deadlocks from pg_stat_database where datname = current_database()"
    async with running_consumer(site, batch_size=100), running_consumer(site, batch_size=100):
        for revision in range(2, 12):
            holder = await asyncpg.connect(site.database_url, timeout=PATIENCE)
            async with holder.transaction():
                await holder.execute("select from jobs where id = 'job-000050' for update")
                for order in (ids, ids[::-1]):
                    await asyncio.gather(*(app.send(a_request(id=one, revision=revision)) for one in order))
            await holder.close(timeout=5)

        async def all_at_the_last() -> bool:
            behind = await database.fetchval("select count(*) from jobs where revision < 11")
            assert behind == 0, f"{behind} jobs are behind"
            return True

        await eventually(all_at_the_last, within=60)
    await database.execute("select pg_stat_force_next_flush()")
    assert await database.fetchval(deadlocks) == 0
    assert await app.count(site.names.parked) == 0
