"""The consumer's SQL for queries. It reads without locks: a query waits for no job that a producer is firing."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from consumer.commands.merge import FoundJob
from consumer.commands.parse import Query
from consumer.store.jobs import CLOSED_REVISION
from shared.contract.history import HistoryEntry
from shared.contract.job_status import JobStatus
from shared.postgres.pool import Connection

FIND_JOBS = f"""
select id, status, {CLOSED_REVISION} as revision, topic, sequence, last_due_at, next_run_at, rule, rule_index, owner,
       life, labels::text
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
            labels=row["labels"],
        )
        for row in rows
    }


# Each id is a walk along the index from its newest entry, which stops after as many as are asked for.
READ_HISTORY = """
select e.*
  from unnest($1::text[], $2::int[]) as asked(job_id, entries)
 cross join lateral (
       select job_id, what, at, life, revision, sequence, due_at, by_user, app_id, operator, note, details
         from history
        where job_id = asked.job_id
        order by at desc
        limit asked.entries) as e
"""


async def read_history(connection: Connection, queries: Iterable[Query]) -> dict[str, list[HistoryEntry]]:
    """Return the newest entries of the history of each id that is asked for, newest first: as many as the query for it
    that asks for most.
    """
    entries: dict[str, int] = {}
    for query in queries:
        if query.history:
            entries[query.id] = max(query.history, entries.get(query.id, 0))
    found: dict[str, list[HistoryEntry]] = defaultdict(list)
    if entries:
        for row in await connection.fetch(READ_HISTORY, list(entries), list(entries.values())):
            found[row["job_id"]].append(HistoryEntry(**dict(row)))
    return found
