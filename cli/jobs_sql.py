"""The queries by which the command line reads jobs. Pending jobs come from the producer's indexes, ended jobs from the
index of retention: a query costs what it shows, however many rows the table has.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.postgres.pool import Connection

_JOB_COLUMNS = """id, status, topic, next_run_at, retry_at, revision, sequence, last_due_at, finished_at, owner,
       rule->>'rrule' as rrule, rule->>'cron' as cron, (rule->>'every_seconds')::int as every_seconds,
       webhook->>'url' is not null as has_webhook"""
_TOPIC_FILTER = "($1::text is null or topic = $1 or starts_with(topic, $1 || '.'))"
_DUE_FILTER = "($2::timestamptz is null or next_run_at >= $2) and ($3::timestamptz is null or next_run_at < $3)"

LIST_PENDING = f"""
select * from (
    (select {_JOB_COLUMNS} from jobs
      where status = 'pending' and retry_at is null and {_TOPIC_FILTER} and {_DUE_FILTER} order by next_run_at limit $4)
    union all
    (select {_JOB_COLUMNS} from jobs
      where status = 'pending' and retry_at is not null and {_TOPIC_FILTER} and {_DUE_FILTER}
      order by next_run_at limit $4)
) as pending
 order by next_run_at, id limit $4
"""  # noqa: S608 - put together from constants

LIST_PAUSED = f"""
select {_JOB_COLUMNS} from jobs where status = 'paused' and {_TOPIC_FILTER} and {_DUE_FILTER}
 order by next_run_at, id limit $4
"""  # noqa: S608

LIST_ENDED_JOBS = f"""
select {_JOB_COLUMNS} from jobs
 where status in ('done', 'cancelled') and status = $5 and {_TOPIC_FILTER}
   and ($2::timestamptz is null or finished_at >= $2) and ($3::timestamptz is null or finished_at < $3)
 order by finished_at desc limit $4
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs to list. `topic` includes topics below it; `since` and `until` bound the next run, or the end of ended
    jobs.
    """

    state: str
    topic: str | None
    since: datetime | None
    until: datetime | None
    limit: int


async def list_jobs(connection: Connection, wanted: Wanted) -> list[dict[str, Any]]:
    bounds = (wanted.topic, wanted.since, wanted.until, wanted.limit)
    match wanted.state:
        case "pending":
            rows = await connection.fetch(LIST_PENDING, *bounds)
        case "paused":
            rows = await connection.fetch(LIST_PAUSED, *bounds)
        case _:
            rows = await connection.fetch(LIST_ENDED_JOBS, *bounds, wanted.state)
    return [dict(row) for row in rows]


READ_JOB = """
select id, status, topic, owner, next_run_at, retry_at, refusals, revision, version, sequence, last_due_at,
       payload::text, webhook::text, rule::text, rule_index, misfire, misfire_grace_seconds, traceparent, created_at,
       updated_at, finished_at
  from jobs where id = $1
"""


async def read_job(connection: Connection, job_id: str) -> dict[str, Any] | None:
    row = await connection.fetchrow(READ_JOB, job_id)
    return dict(row) if row else None
