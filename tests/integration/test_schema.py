"""The schema's constraints hold for every writer, and any number of processes may migrate at once."""

import asyncio
import re
from typing import Any

import asyncpg
import pytest

from shared.contract.job_status import JOB_MOVES, JobStatus
from shared.postgres.migrate import CREATE_LEDGER, apply, current_version, migrate, newest_version
from tests.documents.blocks import blocks_of
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import insert_due
from tests.support.services import ROOT
from tests.support.stores import Site, Stores

MIGRATIONS = ROOT / "shared" / "postgres" / "migrations"

MOVE = {
    JobStatus.PENDING: "status = 'pending', next_run_at = now(), finished_at = null",
    JobStatus.PAUSED: "status = 'paused', next_run_at = now(), finished_at = null",
    JobStatus.DONE: "status = 'done', next_run_at = null, finished_at = now()",
    JobStatus.CANCELLED: "status = 'cancelled', next_run_at = null, finished_at = now()",
}


@pytest.mark.parametrize("after", JobStatus)
@pytest.mark.parametrize("before", JobStatus)
async def test_the_database_allows_exactly_the_legal_moves(database: Any, before: JobStatus, after: JobStatus) -> None:
    await insert_due(database, 1)
    await database.execute(f"update jobs set {MOVE[before]}")
    if after in JOB_MOVES[before]:
        await database.execute(f"update jobs set {MOVE[after]}")
        assert await database.fetchval("select status from jobs") == after
    else:
        with pytest.raises(asyncpg.CheckViolationError, match="cannot become"):
            await database.execute(f"update jobs set {MOVE[after]}")


ENDED = sorted(status for status, moves in JOB_MOVES.items() if not moves)
NEW_LIFE = f"{MOVE[JobStatus.PENDING]}, revision = revision + 1, life = life + 1"


@pytest.mark.parametrize("before", ENDED)
async def test_a_higher_revision_begins_a_new_life_of_an_ended_id_or_is_closed(
    database: Any, before: JobStatus
) -> None:
    await insert_due(database, 1)
    await database.execute(f"update jobs set {MOVE[before]}")
    await database.execute("update jobs set revision = revision + 1")
    assert await database.fetchval("select status from jobs") == before
    await database.execute(f"update jobs set {NEW_LIFE}")
    assert await database.fetchval("select status from jobs") == JobStatus.PENDING


@pytest.mark.parametrize(
    "change",
    [
        f"{MOVE[JobStatus.PENDING]}, revision = revision, life = life + 1",
        f"{MOVE[JobStatus.PENDING]}, revision = revision - 1, life = life + 1",
        f"{MOVE[JobStatus.PENDING]}, revision = revision + 1",
        f"{MOVE[JobStatus.PENDING]}, revision = revision + 1, life = life + 2",
        f"{MOVE[JobStatus.PAUSED]}, revision = revision + 1, life = life + 1",
        "revision = revision - 1",
        "revision = revision + 1, life = life + 1",
        "payload = '1'",
    ],
)
@pytest.mark.parametrize("before", ENDED)
async def test_nothing_else_changes_a_job_that_has_ended(database: Any, before: JobStatus, change: str) -> None:
    await insert_due(database, 1)
    await database.execute(f"update jobs set {MOVE[before]}")
    with pytest.raises(asyncpg.CheckViolationError, match="cannot become"):
        await database.execute(f"update jobs set {change}")


@pytest.mark.parametrize(("before", "kept"), [(JobStatus.DONE, 2), (JobStatus.CANCELLED, 1)])
async def test_a_new_life_drops_the_unfired_triggers_of_a_cancelled_one_alone(
    database: Any, before: JobStatus, kept: int
) -> None:
    await insert_due(database, 1)
    await database.execute(
        "insert into triggers (job_id, trigger_id, sequence, fired_at)"
        " select id, n::text, n, case when n = 2 then now() end from jobs, generate_series(1, 2) as n"
    )
    await database.execute(f"update jobs set {MOVE[before]}")
    await database.execute(f"update jobs set {NEW_LIFE}")
    assert await database.fetchval("select count(*) from triggers") == kept


async def test_the_migration_of_lives_rewrites_no_table_and_takes_rows_as_they_are(
    stores: Stores, database: Any
) -> None:
    """The rows are those of the release before, whose services go on inserting without the new columns."""
    await database.execute("create database before_lives")
    connection = await asyncpg.connect(stores.database("before_lives"), timeout=PATIENCE)
    try:
        files = sorted(MIGRATIONS.glob("*.sql"))
        before = [file for file in files if file.name < "0006"]
        await connection.execute(CREATE_LEDGER)
        for number, file in enumerate(before, start=1):
            entry = f"insert into duebell_migrations (version, name) values ({number}, '{file.name}')"
            await apply(connection, file.read_text(), entry)
        await insert_due(connection, 1000)
        await connection.execute("insert into triggers (job_id, trigger_id, sequence) select id, 'x', 1 from jobs")
        await connection.execute(f"update jobs set {MOVE[JobStatus.CANCELLED]} where id < 'job-000500'")
        pages = """select array_agg(pg_relation_filenode(oid) order by relname)
                     from pg_class where relkind = 'r' and relname = any($1)"""
        tables = ["jobs", "triggers"]
        files_before = await connection.fetchval(pages, tables)
        assert await migrate(stores.database("before_lives")) == [file.name for file in files[len(before) :]]
        assert await connection.fetchval(pages, tables) == files_before
        await insert_due(connection, 1, prefix="of-an-old-consumer-")
        await connection.execute("insert into triggers (job_id, trigger_id, sequence) select id, 'y', 2 from jobs")
        lives = await connection.fetch(
            "select distinct j.life, j.pause_revision, t.life from jobs j join triggers t on t.job_id = j.id"
        )
        assert [tuple(row) for row in lives] == [(1, 0, 1)]
        await connection.execute(f"update jobs set {NEW_LIFE} where id = 'job-000001'")
    finally:
        await connection.close(timeout=5)
        await database.execute("drop database before_lives with (force)")


@pytest.mark.parametrize(
    "change",
    [
        "status = 'waiting'",
        "next_run_at = null",
        "status = 'done'",
        "finished_at = now()",
        "next_run_at = 'infinity'",
        "next_run_at = '9999-01-01Z'",
        "misfire = 'maybe'",
        "misfire_grace_seconds = -1",
        "id = ''",
        "id = repeat('x', 201)",
    ],
)
async def test_the_database_refuses_rows_that_make_no_sense(database: Any, change: str) -> None:
    await insert_due(database, 1)
    with pytest.raises(asyncpg.CheckViolationError):
        await database.execute(f"update jobs set {change}")


async def test_ten_migrations_at_once_do_the_work_once(stores: Stores, site: Site, database: Any) -> None:
    await database.execute("create database fresh_for_migrations")
    try:
        url = stores.database("fresh_for_migrations")
        applied = await asyncio.gather(*(migrate(url) for _ in range(10)))
        files = [file for by_one in applied for file in by_one]
        assert len(files) == len(set(files)) == newest_version(), "each file once, by any of them"
        connection = await asyncpg.connect(url, timeout=PATIENCE)
        assert await current_version(connection) == newest_version()
        await connection.close(timeout=5)
    finally:
        await database.execute("drop database fresh_for_migrations with (force)")


async def test_no_query_waits_behind_a_migration_that_waits_for_a_table(site: Site, database: Any) -> None:
    reading, migrating = [await asyncpg.connect(site.database_url, timeout=PATIENCE) for _ in range(2)]
    try:
        async with reading.transaction():
            await reading.execute("select from jobs")
            waiting = asyncio.create_task(apply(migrating, "alter table jobs add column more integer"))
            await eventually(lambda: _waits_for_a_lock(reading, migrating.get_server_pid()))
            assert await database.fetchval("select count(*) from jobs", timeout=10) == 0
            assert not waiting.done()
        await asyncio.wait_for(waiting, PATIENCE)
        await database.fetchval("select more from jobs")
    finally:
        await reading.close(timeout=5)
        await migrating.close(timeout=5)


async def _waits_for_a_lock(connection: Any, pid: int) -> bool:
    return bool(await connection.fetchval("select cardinality(pg_blocking_pids($1)) > 0", pid))


@pytest.mark.parametrize("table", ["jobs", "deliveries", "delivery_attempts", "delivery_announcements"])
async def test_vacuum_comes_by_the_thousand_rows_whatever_a_table_holds(database: Any, table: str) -> None:
    """A fifth of ten million rows, which is the default, would come too late for claims that step over dead ones."""
    options = await database.fetchval("select reloptions from pg_class where relname = $1", table)
    settings = dict(option.split("=") for option in options)
    assert float(settings["autovacuum_vacuum_scale_factor"]) == 0.0
    assert int(settings["autovacuum_vacuum_threshold"]) <= 5000
    if table in {"jobs", "deliveries"}:
        assert int(settings["fillfactor"]) < 90, "room for the next version of a row on its own page"
        assert float(settings["autovacuum_vacuum_cost_delay"]) == 0.0


async def test_what_is_claimed_from_holds_no_row_that_has_ended(database: Any) -> None:
    indexes = {row["indexname"]: row["indexdef"] for row in await database.fetch("select * from pg_indexes")}
    for name in ("jobs_due", "jobs_refused"):
        assert "status = 'pending'" in indexes[name]
    assert "finished_at IS NULL" in indexes["deliveries_due"]
    assert "'PENDING'" in indexes["deliveries_due_of_host"]


async def test_the_indexes_of_a_large_table_can_be_built_before_the_migration(database: Any) -> None:
    """They are the indexes that migrations since 0.1.0 build on tables of 0.1.0, and come out the same."""
    built = re.compile(r"create (?:unique )?index (?:if not exists )?(\w+) on (\w+)")
    text = {int(file.name[:4]): file.read_text() for file in MIGRATIONS.glob("*.sql")}
    new_tables = {name for version in text if version > 5 for name in re.findall(r"create table (\w+)", text[version])}
    names = sorted(
        index
        for version in text
        if version > 5
        for index, table in built.findall(text[version])
        if table not in new_tables
    )
    look = "select indexname, indexdef from pg_indexes where indexname = any($1) order by indexname"
    rename = "alter index jobs_due_in_order rename to jobs_due"
    assert rename in text[14]
    names[names.index("jobs_due_in_order")] = "jobs_due"
    made = await database.fetch(look, names)
    for name in names:
        await database.execute(f"drop index {name}")
    [block] = [block for block in blocks_of("docs/operations/upgrading.md") if block.language == "sql"]
    for statement in block.text.removesuffix(";\n").split(";\n"):
        await database.execute(statement)
    await database.execute(rename)
    assert await database.fetch(look, names) == made
    assert len(made) == len(names) == 5
    for version in (11, 12, 13, 14):
        assert "create index if not exists " in text[version]


@pytest.mark.parametrize(
    ("migration", "before", "interrupted", "built"),
    [
        (
            "0013_newest_deliveries_of_a_job.sql",
            "alter index deliveries_of_job rename to deliveries_job",
            "create index deliveries_of_job on deliveries (job_id)",
            ("deliveries_of_job", "(job_id, id)"),
        ),
        (
            "0014_due_jobs_in_order.sql",
            "select",
            "create index jobs_due_in_order on jobs (next_run_at)",
            ("jobs_due", "(next_run_at, id)"),
        ),
    ],
)
async def test_an_index_whose_building_was_interrupted_is_built_by_the_migration(
    database: Any, migration: str, before: str, interrupted: str, built: tuple[str, str]
) -> None:
    await database.execute(before)
    await database.execute(interrupted)
    await database.execute(
        "update pg_index set indisvalid = false where indexrelid = $1::text::regclass", interrupted.split()[2]
    )
    await database.execute((MIGRATIONS / migration).read_text())
    name, columns = built
    row = await database.fetchrow(
        "select indisvalid, pg_get_indexdef(indexrelid) as is from pg_index where indexrelid = $1::text::regclass", name
    )
    assert row["indisvalid"]
    assert columns in row["is"]
