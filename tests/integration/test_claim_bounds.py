"""One claim is bounded in messages and in bytes, whatever its jobs ask for; the rest is left for the next."""

from datetime import timedelta
from typing import Any

from producer.firing import MAX_BYTES, MAX_MESSAGES, Fired
from producer.planning import BURST
from tests.support.application import Application
from tests.support.builders import minutely
from tests.support.firing import a_firer
from tests.support.jobs import insert_due
from tests.support.stores import Site

LONG_AGO = "2020-01-01T00:00:00Z"
ORDER = ["rings-000001", "rings-000002", "skips-000001", "rule-000001"]


async def test_a_claim_publishes_no_more_messages_than_its_bound(site: Site, app: Application, database: Any) -> None:
    await insert_due(database, 100, late=timedelta(hours=1), rule=minutely(start_at="2020-01-01T00:00:00Z"))
    async with a_firer(site) as firer:
        fired = await firer.fire_once()
        assert isinstance(fired, Fired)
        assert fired.full, "there is more"
        published = await database.fetchval("select sum(sequence) from jobs")
        assert MAX_MESSAGES - BURST <= published <= MAX_MESSAGES + BURST
        untouched = await database.fetchval("select count(*) from jobs where version = 1")
        assert untouched == 100 - fired.jobs > 0


async def test_a_claim_publishes_no_more_bytes_than_its_bound(site: Site, app: Application, database: Any) -> None:
    await insert_due(database, 100, late=timedelta(hours=1))
    size = 200_000
    await database.execute("update jobs set payload = to_json(repeat('x', $1))", size)
    async with a_firer(site) as firer:
        fired = await firer.fire_once()
        assert isinstance(fired, Fired)
        assert fired.jobs <= MAX_BYTES // size + 1
        while isinstance(await firer.fire_once(), Fired):
            pass
        assert await database.fetchval("select count(*) from jobs where status = 'done'") == 100


async def test_one_claim_settles_every_kind_of_job(site: Site, app: Application, database: Any) -> None:
    """A one-shot that rang, one that its policy drops, and a rule: each row as it should be after its kind."""
    await insert_due(database, 2, prefix="rings-", late=timedelta(hours=1))
    await insert_due(database, 1, prefix="skips-", late=timedelta(hours=1))
    await insert_due(database, 1, prefix="rule-", late=timedelta(hours=1), rule=minutely(start_at=LONG_AGO))
    await database.execute("update jobs set misfire = 'skip' where id like 'skips-%'")
    await database.execute("update jobs set sequence = 4, refusals = 2 where id = 'rings-000002'")
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
    assert 1 <= rule["sequence"] <= BURST
    assert rule["next_run_at"] > rule["last_due_at"] >= due["rule-000001"]
