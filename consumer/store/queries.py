"""The consumer's SQL for queries. It reads without locks: a query waits for no job that a producer is firing."""

from collections.abc import Sequence

from consumer.commands.merge import FoundJob
from consumer.commands.parse import Query
from consumer.store.jobs import CLOSED_REVISION
from shared.contract.job_status import JobStatus
from shared.postgres.pool import Connection

FIND_JOBS = f"""
select id, status, {CLOSED_REVISION} as revision, topic, sequence, last_due_at, next_run_at, rule, rule_index, owner,
       life
  from jobs
 where id = any($1::text[])
"""  # noqa: S608 - put together from constants


async def find_jobs(connection: Connection, queries: Sequence[Query]) -> dict[str, FoundJob]:
    """Return the jobs that the queries ask for. An id without a row is missing."""
    rows = await connection.fetch(FIND_JOBS, list({query.id for query in queries}))
    return {
        row["id"]: FoundJob(
            status=JobStatus(row["status"]),
            revision=row["revision"],
            topic=row["topic"],
            sequence=row["sequence"],
            last_due_at=row["last_due_at"],
            next_run_at=row["next_run_at"],
            rule=row["rule"],
            rule_index=row["rule_index"],
            owner=row["owner"],
            life=row["life"],
        )
        for row in rows
    }
