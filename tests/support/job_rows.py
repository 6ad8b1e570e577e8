"""Rows of `jobs`, written and read directly: for tests of the producer or of the schema alone."""

from datetime import timedelta
from typing import Any

from tests.support.eventually import eventually

INSERT = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at, rule)
select $1 || lpad(n::text, 6, '0'), 'pending', 1, $2, to_json(n), 'all', 60, now() - $3::interval, $5::json
  from generate_series(1, $4) as n
"""


async def insert_due(
    database: Any,
    count: int,
    *,
    prefix: str = "job-",
    topic: str = "default",
    late: timedelta = timedelta(0),
    rule: str | None = None,
) -> None:
    """Insert `count` one-shot jobs that became due `late` ago."""
    await database.execute(INSERT, prefix, topic, late, count, rule)


async def read_job(database: Any, job_id: str) -> Any:
    return await database.fetchrow("select * from jobs where id = $1", job_id)


async def wait_for_status(database: Any, job_id: str, status: str) -> Any:
    async def look() -> Any:
        row = await read_job(database, job_id)
        assert row is not None, f"{job_id} is not there"
        assert row["status"] == status, f"{job_id} is {row['status']}"
        return row

    return await eventually(look)


async def wait_until_none_pending(database: Any, within: float = 30.0) -> None:
    async def look() -> bool:
        pending = await database.fetchval("select count(*) from jobs where status = 'pending'")
        assert pending == 0, f"{pending} jobs still pending"
        return True

    await eventually(look, within)


async def a_session_waits_for_a_lock(database: Any) -> bool:
    """Tell whether any session of this database waits for a lock."""
    return bool(
        await database.fetchval(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
    )
