"""Tests that no job keeps a lane busy for itself: rules far behind, claims that cannot be settled, a locked table."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from producer.decisions.due_event import MAX_CLAIM_MESSAGES
from producer.decisions.plan import MAX_TURN_OCCURRENCES
from tests.support.application import Application
from tests.support.builders import minutely
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import insert_due, wait_until_none_pending
from tests.support.services import running_producer
from tests.support.stores import Site

SECONDLY = minutely(rrule="FREQ=SECONDLY", start_at="2020-01-01T00:00:00Z")
A_CLAIM_WAITS = """
select count(*) > 0 from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock' and query like '%for no key update%'
"""
REFUSE_TO_SETTLE = """
create function stumble() returns trigger language plpgsql as $$
begin raise exception 'no space left' using errcode = 'disk_full'; end $$;
create trigger stumble before update on jobs for each row execute function stumble()
"""


async def test_rules_that_are_a_day_behind_leave_others_their_turn(site: Site, app: Application, database: Any) -> None:
    """The rules are older than all other late jobs, and have more due occurrences than a claim can hold."""
    await insert_due(
        database, MAX_CLAIM_MESSAGES // MAX_TURN_OCCURRENCES + 10, prefix="rule-", late=timedelta(days=1), rule=SECONDLY
    )
    await insert_due(database, 20, prefix="late-", late=timedelta(minutes=5))
    async with running_producer(site, claims_in_flight=1):

        async def the_others_are_done() -> bool:
            return bool(await database.fetchval("select count(*) = 20 from jobs where status = 'done'"))

        await eventually(the_others_are_done)
        assert await database.fetchval("select bool_and(sequence > 0) from jobs where id like 'rule-%'")
        assert await database.fetchval("select bool_and(refusals = 0) from jobs")


async def test_a_rule_that_is_behind_catches_up_without_waiting_for_a_poll(
    site: Site, app: Application, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producer.lanes.PRODUCER_POLL_SECONDS", 3600.0)
    await insert_due(database, 1, late=timedelta(seconds=5 * MAX_TURN_OCCURRENCES), rule=SECONDLY)
    async with running_producer(site):

        async def caught_up() -> bool:
            return bool(
                await database.fetchval(
                    "select sequence >= 5 * $1::int and retry_at is null from jobs", MAX_TURN_OCCURRENCES
                )
            )

        await eventually(caught_up, within=5)


async def test_claims_that_cannot_be_settled_are_not_published_again_and_again(
    site: Site, app: Application, database: Any
) -> None:
    """Postgres allows claims and refuses updates, for example because its disk is full. All Firers of a lane get the
    error.
    """
    await insert_due(database, 300)
    await database.execute(REFUSE_TO_SETTLE)
    async with running_producer(site, batch_size=100, claims_in_flight=3):
        await app.hears(300)
        await asyncio.sleep(2.0)  # few events may be published in this time
        assert len(app.heard) < 600
        await database.execute("drop trigger stumble on jobs")
        await wait_until_none_pending(database)


async def test_nothing_is_published_while_a_lock_prevents_settling(site: Site, app: Application, database: Any) -> None:
    """CREATE INDEX holds such a lock: a claim alone would get its rows, and settling would wait for the index."""
    await insert_due(database, 5)
    building = await asyncpg.connect(site.database_url, timeout=PATIENCE)

    async def a_claim_waits() -> bool:
        return bool(await database.fetchval(A_CLAIM_WAITS))

    try:
        async with building.transaction():
            await building.execute("lock table jobs in share mode")
            async with running_producer(site):
                await eventually(a_claim_waits)
                assert len(app.heard) == 0
                await building.execute("rollback")
                await wait_until_none_pending(database)
                await app.hears(5)
    finally:
        building.terminate()
