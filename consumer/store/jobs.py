"""The consumer's SQL for requests and cancels."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from consumer.commands.merge import Change, StoredJob
from shared.contract.job_status import JobStatus
from shared.contract.messages import Misfire
from shared.postgres import wake_producers
from shared.postgres.pool import Connection

APPLY_CHANGES = """
insert into jobs (id, status, revision, topic, payload, webhook, rule, rule_index, misfire, misfire_grace_seconds,
                  next_run_at, traceparent, owner, finished_at)
select c.id, c.status, c.revision, c.topic, c.payload::json, c.webhook::json, c.rule::json, c.rule_index, c.misfire,
       c.misfire_grace_seconds, c.next_run_at, c.traceparent, c.owner, case when c.status = 'cancelled' then now() end
  from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
              $9::text[], $10::int[], $11::timestamptz[], $12::text[], $13::text[])
       as c(id, status, revision, topic, payload, webhook, rule, rule_index,
            misfire, misfire_grace_seconds, next_run_at, traceparent, owner)
 order by c.id
on conflict (id) do update set
    -- A paused job that is rescheduled stays paused.
    status = case when excluded.status = 'cancelled' then excluded.status else jobs.status end,
    next_run_at = excluded.next_run_at,
    finished_at = excluded.finished_at,
    retry_at = null,
    refusals = 0,
    version = jobs.version + 1,
    updated_at = now(),
    -- A reschedule replaces the whole request; a cancel leaves it readable.
    (revision, topic, payload, webhook, rule, rule_index, misfire, misfire_grace_seconds, traceparent) = (
        select excluded.revision, excluded.topic, excluded.payload, excluded.webhook, excluded.rule,
               excluded.rule_index, excluded.misfire, excluded.misfire_grace_seconds, excluded.traceparent
         where excluded.status = 'pending'
        union all
        select jobs.revision, jobs.topic, jobs.payload, jobs.webhook, jobs.rule,
               jobs.rule_index, jobs.misfire, jobs.misfire_grace_seconds, jobs.traceparent
         where excluded.status = 'cancelled')
  where jobs.status in ('pending', 'paused') and (excluded.status = 'cancelled' or excluded.revision > jobs.revision)
    and (jobs.owner is null or jobs.owner = excluded.owner or excluded.owner = any($14::text[]))
returning id, status, revision, next_run_at, owner, version = 1 as created,
          status = 'pending' and next_run_at <= now() + make_interval(secs => $15) as due_soon
"""


async def apply_changes(
    connection: Connection, changes: Sequence[Change], operators: Sequence[str] = ()
) -> dict[str, StoredJob]:
    """Create, reschedule and cancel jobs. Call it inside a transaction. Returns the jobs as they stand afterwards.

    After the commit: every id of the changes has a row; open rows have the highest revision seen; cancelled ids are
    cancelled for good; and rows of an owner have changed only for the owner or an operator. It waits for rows that a
    producer is firing, so a change applies whole or comes late.

    Requests and cancels are one statement, in the order of ids: for that reason two consumers cannot deadlock.
    """
    rows = [_columns(change) for change in changes]
    applied = await connection.fetch(
        APPLY_CHANGES,
        *(list(column) for column in zip(*rows, strict=True)),
        list(operators),
        wake_producers.NOTIFY_WITHIN_SECONDS,
    )
    jobs = {row["id"]: _stored(row, applied=True, created=row["created"]) for row in applied}
    if unchanged := [change.id for change in changes if change.id not in jobs]:
        jobs |= await _read_jobs(connection, unchanged)
    if any(job.due_soon for job in jobs.values()):
        await wake_producers.notify(connection)
    return jobs


def _columns(change: Change) -> tuple[object, ...]:
    status = JobStatus.PENDING if change.cancelled_by is None else JobStatus.CANCELLED
    wanted = change.schedule
    if wanted is None:
        # A cancel that may have overtaken its request: a cancelled row, by which the late request learns that it is
        # cancelled.
        return (change.id, status, 0, "default", None, None, None, 1, Misfire.ALL, 0, None, None, change.user)
    return (
        change.id,
        status,
        wanted.revision,
        wanted.topic,
        wanted.payload,
        wanted.webhook,
        wanted.rule.to_json() if wanted.rule else None,
        wanted.rule_index,
        wanted.misfire,
        wanted.misfire_grace_seconds,
        wanted.next_run_at if status is JobStatus.PENDING else None,
        wanted.traceparent,
        change.user,
    )


# due_soon: the job is due about now, and a claim may have skipped its row while this transaction held the lock.
READ_JOBS = """
select id, status, revision, next_run_at, owner,
       status = 'pending' and coalesce(retry_at, next_run_at) between now() - make_interval(secs => $2)
                                                                  and clock_timestamp() + make_interval(secs => $2)
       as due_soon
  from jobs
 where id = any($1::text[])
"""


async def _read_jobs(connection: Connection, ids: list[str]) -> dict[str, StoredJob]:
    """Return the jobs that APPLY_CHANGES did not change. It has locked their rows, so they are as it saw them."""
    rows = await connection.fetch(READ_JOBS, ids, wake_producers.NOTIFY_WITHIN_SECONDS)
    return {row["id"]: _stored(row) for row in rows}


def _stored(row: asyncpg.Record, *, applied: bool = False, created: bool = False) -> StoredJob:
    status, revision, next_run_at, owner = JobStatus(row["status"]), row["revision"], row["next_run_at"], row["owner"]
    return StoredJob(status, revision, next_run_at, applied, created, owner, row["due_soon"])


async def database_now(connection: Connection) -> datetime:
    """Return the time by Postgres' clock."""
    now: datetime = await connection.fetchval("select now()")
    return now
