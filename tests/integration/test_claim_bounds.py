"""Tests the bounds of a claim: messages and bytes, whatever its jobs ask for, and few rows after a failure."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from producer.decisions.due_event import MAX_CLAIM_BYTES, MAX_CLAIM_MESSAGES
from producer.decisions.plan import MAX_TURN_OCCURRENCES
from producer.firing import Fired
from tests.support.application import Application
from tests.support.builders import minutely
from tests.support.firer import a_firer
from tests.support.job_rows import insert_due
from tests.support.stores import Site

LONG_AGO = "2020-01-01T00:00:00Z"
ORDER = ["fires-000001", "fires-000002", "skips-000001", "rule-000001"]


async def test_a_claim_publishes_no_more_messages_than_its_bound(site: Site, app: Application, database: Any) -> None:
    await insert_due(database, 100, late=timedelta(hours=1), rule=minutely(start_at="2020-01-01T00:00:00Z"))
    async with a_firer(site) as firer:
        fired = await firer.fire_once()
        assert isinstance(fired, Fired)
        assert fired.full, "there is more"
        published = await database.fetchval("select sum(sequence) from jobs")
        assert MAX_CLAIM_MESSAGES - MAX_TURN_OCCURRENCES <= published <= MAX_CLAIM_MESSAGES + MAX_TURN_OCCURRENCES
        untouched = await database.fetchval("select count(*) from jobs where version = 1")
        assert untouched == 100 - fired.rows > 0


async def test_a_claim_publishes_no_more_bytes_than_its_bound(site: Site, app: Application, database: Any) -> None:
    await insert_due(database, 100, late=timedelta(hours=1))
    size = 200_000
    await database.execute("update jobs set payload = to_json(repeat('x', $1))", size)
    async with a_firer(site) as firer:
        fired = await firer.fire_once()
        assert isinstance(fired, Fired)
        assert fired.rows <= MAX_CLAIM_BYTES // size + 1
        while isinstance(await firer.fire_once(), Fired):
            pass
        assert await database.fetchval("select count(*) from jobs where status = 'done'") == 100


async def test_one_claim_settles_every_kind_of_job(site: Site, app: Application, database: Any) -> None:
    """The claim has two one-shots that are published, one that its policy drops, and a rule."""
    await insert_due(database, 2, prefix="fires-", late=timedelta(hours=1))
    await insert_due(database, 1, prefix="skips-", late=timedelta(hours=1))
    await insert_due(database, 1, prefix="rule-", late=timedelta(hours=1), rule=minutely(start_at=LONG_AGO))
    await database.execute("update jobs set misfire = 'skip' where id like 'skips-%'")
    await database.execute("update jobs set sequence = 4, refusals = 2 where id = 'fires-000002'")
    due = {row["id"]: row["next_run_at"] for row in await database.fetch("select id, next_run_at from jobs")}
    async with a_firer(site) as firer:
        assert await firer.fire_once() == Fired(4, full=False)

    rows = {row["id"]: row for row in await database.fetch("select * from jobs")}
    first, second, skipped, rule = (rows[name] for name in ORDER)
    for row, sequence in ((first, 1), (second, 5)):
        assert (row["status"], row["sequence"], row["last_due_at"]) == ("done", sequence, due[row["id"]])
        assert (row["next_run_at"], row["refusals"], row["retry_at"], row["version"]) == (None, 0, None, 2)
        assert row["finished_at"] is not None
    assert (skipped["status"], skipped["sequence"], skipped["last_due_at"]) == ("done", 0, None)
    assert (rule["status"], rule["version"]) == ("pending", 2)
    assert 1 <= rule["sequence"] <= MAX_TURN_OCCURRENCES
    assert rule["next_run_at"] > rule["last_due_at"] >= due["rule-000001"]


REFUSED_BY_THE_UPDATE = "alter table jobs add constraint nothing_ends check (status <> 'done')"
REFUSED_BY_THE_COMMIT = """
create function refuse() returns trigger language plpgsql as $$ begin raise check_violation; end $$;
create constraint trigger nothing_ends after update on jobs deferrable initially deferred
    for each row execute function refuse();
"""


@pytest.mark.parametrize(
    ("refuse", "allow"),
    [
        (REFUSED_BY_THE_UPDATE, "alter table jobs drop constraint nothing_ends"),
        (REFUSED_BY_THE_COMMIT, "drop trigger nothing_ends on jobs"),
    ],
    ids=["the update fails", "the commit fails"],
)
async def test_after_a_claim_that_was_published_and_not_settled_the_next_is_of_one_row(
    site: Site, app: Application, database: Any, refuse: str, allow: str
) -> None:
    """All events of the claim will be published again, so the claims are small until one is settled."""
    await insert_due(database, 20, late=timedelta(hours=1))
    await database.execute(refuse)
    async with a_firer(site) as firer:
        for _ in range(2):
            with pytest.raises(asyncpg.CheckViolationError):
                await firer.fire_once()
        assert len(await app.hears(21)) == 21
        await database.execute(allow)
        assert [await firer.fire_once() for _ in range(3)] == [Fired(n, full=True) for n in (1, 2, 4)]


async def test_a_claim_that_failed_before_it_was_published_makes_the_next_no_smaller(
    site: Site, app: Application, database: Any
) -> None:
    await insert_due(database, 20, late=timedelta(hours=1))
    await database.execute("alter table jobs rename column topic to subject")
    async with a_firer(site) as firer:
        with pytest.raises(asyncpg.UndefinedColumnError):
            await firer.fire_once()
        await database.execute("alter table jobs rename column subject to topic")
        assert await firer.fire_once() == Fired(20, full=False)
