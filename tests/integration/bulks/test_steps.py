"""The steps of a bulk: which jobs it finds, and that it ends the same however often it is interrupted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from shared.contract.messages import BulkAction
from shared.runtime.fault_points import Point, listen
from tests.support.bulks import Bulks, some_bulks
from tests.support.eventually import eventually
from tests.support.job_rows import a_session_waits_for_a_lock, insert_due
from tests.support.stores import Site

TOPICS = ("default", "a", "a.b", "a-b", "ab", "a.b.c")


async def jobs_of_all_kinds(database: Any) -> None:
    """Insert 48 jobs, eight of each topic: some with labels, of other users, paused, ended, or not yet there."""
    for number, topic in enumerate(TOPICS):
        await insert_due(database, 8, prefix=f"{'xy'[number % 2]}{number}-%_", topic=topic)
    await database.execute("update jobs set next_run_at = now() + interval '1 day'")
    for digit, change in {
        1: """labels = '{"team": "a"}'""",
        2: """labels = '{"team": "a", "env": "b"}', owner = 'me'""",
        3: """labels = '{"team": "a", "env": "b"}', owner = 'other'""",
        4: """labels = '{"team": "b"}', status = 'paused'""",
        5: "status = 'paused', owner = 'me'",
        6: "status = 'done', next_run_at = null, finished_at = now()",
        7: """labels = '{"team": "a"}', created_at = now() + interval '1 day'""",
    }.items():
        await database.execute(f"update jobs set {change} where id like '%' || $1", str(digit))


SELECTORS: list[tuple[dict[str, Any], str]] = [
    ({"labels": {"team": "a"}}, """labels @> '{"team": "a"}'"""),
    ({"labels": {"team": "a", "env": "b"}}, """labels @> '{"team": "a", "env": "b"}'"""),
    ({"labels": {"team": "a"}, "id_prefix": "y"}, """labels @> '{"team": "a"}' and id like 'y%'"""),
    ({"labels": {"team": "a"}, "topic": "a"}, """labels @> '{"team": "a"}' and (topic = 'a' or topic like 'a.%')"""),
    ({"topic": "a"}, "topic = 'a' or topic like 'a.%'"),
    ({"topic": "a.b.c"}, "topic = 'a.b.c'"),
    ({"topic": "nope"}, "false"),
    ({"id_prefix": "x"}, "id like 'x%'"),
    ({"id_prefix": "y3-%_"}, "starts_with(id, 'y3-%_')"),
    ({"id_prefix": "x", "topic": "a"}, "id like 'x%' and (topic = 'a' or topic like 'a.%')"),
]


@pytest.mark.parametrize("action", BulkAction)
async def test_a_bulk_changes_the_open_jobs_that_match_and_that_its_user_may_command(
    site_without_queues: Site, database: Any, action: BulkAction
) -> None:
    await jobs_of_all_kinds(database)
    async with some_bulks(site_without_queues) as bulks:
        for number, (selector, condition) in enumerate(SELECTORS):
            for user, operators in ((None, ()), ("me", ()), ("me", ("me",))):
                may = "true" if operators else f"coalesce(owner, '{user}') = '{user}'" if user else "owner is null"
                name = f"{number}-{user}-{operators}"
                matching = await database.fetchval(
                    f"select count(*) from jobs where ({condition}) and {may} and id not like '%7'"
                    " and status in ('pending', 'paused')"
                )
                changing = await bulks.run(
                    f"{name}-dry", action, dry_run=True, user=user, operators=operators, **selector
                )
                changed = await bulks.run(name, action, user=user, operators=operators, **selector)
                assert changed == changing, (selector, user)
                assert changed[0] == matching, (selector, user)
                told = await database.fetchval("select count(*) from history where details->>'bulk' = $1", name)
                assert told == changed[1]
    kept = await database.fetchval("select count(*) from jobs where id like '%7' and version = 1")
    assert kept == len(TOPICS), "jobs that were not there when it was accepted"
    whole = await database.fetchrow("select * from history where job_id = '0-me-()'")
    assert whole["what"] == "bulk"
    assert whole["by_user"] == "me"


async def _state(database: Any) -> tuple[Any, ...]:
    jobs = await database.fetch(
        "select id, status, version, revision, pause_revision, next_run_at from jobs order by id"
    )
    triggers = await database.fetch("select job_id, trigger_id, sequence from triggers order by job_id")
    told = await database.fetch("select job_id, what, details::text from history order by job_id, what")
    bulk = await database.fetchrow("select matched, changed from bulks")
    return [tuple(row) for row in (*jobs, *triggers, *told)], tuple(bulk)


class Crash(Exception):
    """A consumer dies in the middle of a step."""


async def _until_finished(bulks: list[Bulks], dies: Any) -> int:
    """Let several consumers do steps by turns. Some of them die in the middle of one."""
    steps = 0

    def die(point: Point) -> None:
        if dies():
            raise Crash(point)

    listen(die)
    try:
        working = True
        while working:
            steps += 1
            done = await asyncio.gather(*(each.work.step_once() for each in bulks), return_exceptions=True)
            if unexpected := [one for one in done if isinstance(one, Exception) and not isinstance(one, Crash)]:
                raise unexpected[0]
            working = any(one is not False for one in done)
    finally:
        listen(None)
    return steps


@pytest.mark.parametrize("action", BulkAction)
async def test_a_bulk_that_is_interrupted_ends_as_one_that_is_not(
    site_without_queues: Site, database: Any, action: BulkAction
) -> None:
    await jobs_of_all_kinds(database)
    chance = Random(action)
    ends = []
    async with some_bulks(site_without_queues, 3) as first, some_bulks(site_without_queues, 5) as second:
        await database.execute("create table before as table jobs")
        for dies in (lambda: False, *[lambda: chance.random() < 0.6] * 4):
            await database.execute("truncate triggers, history, bulks; delete from jobs; insert into jobs table before")
            await first.store("it", action, user="me", id_prefix="x")
            await _until_finished([first, second], dies)
            ends.append(await _state(database))
    assert ends[0][1][1] > 0
    assert all(end == ends[0] for end in ends[1:])


async def test_a_step_waits_for_no_job_while_it_has_others_locked(site_without_queues: Site, database: Any) -> None:
    """The producer holds the second job: the first is done and free again, the second waited for alone."""
    await insert_due(database, 4)
    async with some_bulks(site_without_queues, 10) as bulks, bulks.work.pool.acquire() as producer:
        await bulks.store("it", "pause", id_prefix="job-")
        transaction = producer.transaction()
        await transaction.start()
        await producer.execute("select from jobs where id = 'job-000002' for no key update")
        assert await bulks.work.step_once()
        assert await database.fetchval("select count(*) from jobs where status = 'paused'") == 1
        waiting = asyncio.create_task(bulks.work.step_once())
        await eventually(lambda: a_session_waits_for_a_lock(database))
        await database.execute("set lock_timeout = '2s'")
        await database.execute("select from jobs where id <> 'job-000002' for update")
        await transaction.commit()
        assert await waiting
        while await bulks.work.step_once():
            pass
    assert await database.fetchval("select count(*) from jobs where status = 'paused'") == 4


async def test_a_job_that_postgres_refuses_to_change_is_passed_over(site_without_queues: Site, database: Any) -> None:
    await insert_due(database, 5)
    await database.execute("alter table jobs add constraint sick check (id <> 'job-000003' or status = 'pending')")
    async with some_bulks(site_without_queues) as bulks:
        assert await bulks.run("it", "pause", id_prefix="job-") == (5, 4)
    assert [row["id"] for row in await database.fetch("select id from jobs where status <> 'paused'")] == ["job-000003"]


async def test_no_job_of_another_bulk_is_passed_over_in_its_place(site_without_queues: Site, database: Any) -> None:
    """Another consumer takes the bulk when this one has found that its job is refused."""
    await insert_due(database, 2)
    await database.execute("alter table jobs add constraint sick check (id <> 'job-000002' or status = 'pending')")
    tries = 0

    @asynccontextmanager
    async def acquire(timeout: float) -> AsyncIterator[Any]:
        nonlocal tries
        tries += 1
        if tries == 3:
            await database.execute("select from bulks where id = 'sick' for update")
        async with bulks.work.pool.acquire(timeout=timeout) as connection:
            yield connection

    async with some_bulks(site_without_queues) as bulks:
        await bulks.store("sick", "pause", id_prefix="job-000002")
        await bulks.store("well", "pause", id_prefix="job-000001")
        pool: Any = SimpleNamespace(acquire=acquire)
        async with database.transaction():
            assert await replace(bulks.work, pool=pool).step_once()
        while await bulks.work.step_once():
            pass
    assert await database.fetchval("select status from jobs where id = 'job-000001'") == "paused"
