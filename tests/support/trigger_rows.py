"""Rows of `triggers`, written and read directly."""

from typing import Any

from tests.support.eventually import eventually

INSERT = """
insert into triggers (job_id, trigger_id, sequence)
select id, 'trigger-' || n, n from jobs cross join generate_series(1, $1) as n
"""


async def insert_triggers_of_all_jobs(database: Any, each: int) -> None:
    await database.execute(INSERT, each)


async def wait_until_fired(database: Any, number: int) -> list[Any]:
    """Wait until the table has `number` triggers and all of them are fired. Returns their rows."""

    async def look() -> list[Any]:
        rows = await database.fetch("select * from triggers order by job_id, sequence")
        assert [row["fired_at"] is not None for row in rows] == [True] * number
        return list(rows)

    return await eventually(look)
