"""Rows of Duebell's `jobs`, read as the operator."""

from typing import Any

from tests.support.eventually import eventually


async def job_of(database: Any, revision: int = 1) -> Any:
    """Wait until the only job has this revision. Returns its row."""

    async def look() -> Any:
        job = await database.fetchrow("select * from jobs")
        assert job is not None, "no job yet"
        assert job["revision"] == revision, f"still revision {job['revision']}"
        return job

    return await eventually(look, 30)
