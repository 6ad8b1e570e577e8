"""Rows of `deliveries`, written and read directly: for tests that need no broker."""

from typing import Any

from tests.support.eventually import eventually

INSERT = """
insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers,
                        timeout_seconds, max_retries, next_attempt_at)
select 'job-' || n, $1 || '-' || n, $4, 1, now(), now(), '{}', 'http://' || $1 || '/', $1, '{}', 1, 3,
       now() + make_interval(secs => $3)
  from generate_series(1, $2::int) as n
"""


async def insert_rows(database: Any, host: str, number: int, due_in: float = -1.0, topic: str = "hooks") -> None:
    await database.execute(INSERT, host, number, due_in, topic)


async def delivery_of(database: Any, job_id: str) -> Any:
    return await database.fetchrow("select * from deliveries where job_id = $1 order by id desc limit 1", job_id)


async def attempts_of(database: Any, job_id: str) -> list[Any]:
    return list(
        await database.fetch(
            "select a.* from delivery_attempts a join deliveries d on d.id = a.delivery_id where d.job_id = $1"
            " order by delivery_id, number",
            job_id,
        )
    )


async def wait_for_delivery(database: Any, job_id: str, status: str, within: float = 20.0) -> Any:
    """Wait until the newest delivery of the job has the status. Returns its row."""

    async def look() -> Any:
        row = await delivery_of(database, job_id)
        assert row is not None, f"no delivery of {job_id} yet"
        assert row["status"] == status, f"{job_id} is still {row['status']}"
        return row

    return await eventually(look, within)


async def wait_for_deliveries(database: Any, number: int, status: str = "COMPLETED", within: float = 30.0) -> None:
    async def look() -> bool:
        count = await database.fetchval("select count(*) from deliveries where status = $1", status)
        assert count == number, f"{count} of {number} are {status}"
        return True

    await eventually(look, within)
