"""The consumer's SQL for requests and cancels.

Requests, and cancels, each lock their rows by one statement in the order of ids: for that reason two consumers cannot
deadlock.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import asyncpg

from consumer.commands.cancel import CancelledJob, Mark
from consumer.commands.merge import Content, StoredJob
from consumer.commands.schedule import Schedule
from shared.contract.job_status import JobStatus
from shared.postgres import wake_producers
from shared.postgres.pool import Connection

# A request with this revision or a lower one changes nothing. The release before marked ids that were cancelled before
# their request with revision 0, in life 1: such a row, which was never changed, closes revision 1.
CLOSED_REVISION = """
greatest(jobs.revision, case when jobs.status = 'cancelled' and jobs.version = 1 and jobs.life = 1 then 1 else 0 end)
"""

# The texts of payload and webhook are those that a request brought: Postgres keeps json byte for byte.
HASHED_TEXTS = """
sha256(convert_to(payload::text, 'UTF8')) as payload, sha256(convert_to(webhook::text, 'UTF8')) as webhook
"""

# `before` is what the jobs said before the statement, for the history.
APPLY_REQUESTS = f"""
with before as materialized (
    select id, topic, rule, next_run_at, labels::text, {HASHED_TEXTS} from jobs where id = any($1::text[])
), applied as (
    insert into jobs (id, status, revision, topic, payload, webhook, rule, rule_index, misfire, misfire_grace_seconds,
                      next_run_at, traceparent, owner, labels)
    select r.id, 'pending', r.revision, r.topic, r.payload::json, r.webhook::json, r.rule::json, r.rule_index,
           r.misfire, r.misfire_grace_seconds, r.next_run_at, r.traceparent, r.owner, r.labels::jsonb
      from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[],
                  $9::int[], $10::timestamptz[], $11::text[], $12::text[], $13::text[])
           as r(id, revision, topic, payload, webhook, rule, rule_index, misfire, misfire_grace_seconds, next_run_at,
                traceparent, owner, labels)
     order by r.id
    on conflict (id) do update set
        revision = excluded.revision,
        topic = excluded.topic,
        payload = excluded.payload,
        webhook = excluded.webhook,
        rule = excluded.rule,
        rule_index = excluded.rule_index,
        misfire = excluded.misfire,
        misfire_grace_seconds = excluded.misfire_grace_seconds,
        next_run_at = excluded.next_run_at,
        traceparent = excluded.traceparent,
        labels = excluded.labels,
        finished_at = null,
        retry_at = null,
        refusals = 0,
        version = jobs.version + 1,
        updated_at = now(),
        -- A paused job that is rescheduled stays paused. For a job that has ended a new life begins, which counts from
        -- the beginning and, if the id has no owner, has the user of the request for one.
        (status, life, sequence, last_due_at, created_at, owner) = (
            select jobs.status, jobs.life, jobs.sequence, jobs.last_due_at, jobs.created_at, jobs.owner
             where jobs.status in ('pending', 'paused')
            union all
            select 'pending', jobs.life + 1, 0, null, now(), coalesce(jobs.owner, excluded.owner)
             where jobs.status in ('done', 'cancelled'))
      where excluded.revision > {CLOSED_REVISION}
        and (jobs.owner is null or jobs.owner = excluded.owner or excluded.owner = any($14::text[]))
    returning id, status, revision, next_run_at, owner, life,
              -- A reschedule sets updated_at alone.
              created_at = updated_at as created,
              status = 'pending' and next_run_at <= now() + make_interval(secs => $15) as due_soon
)
select applied.*, before.id is not null as existed, before.topic, before.rule, before.next_run_at as run_before,
       before.payload, before.webhook, before.labels
  from applied left join before using (id)
"""  # noqa: S608 - put together from constants


async def apply_requests(
    connection: Connection, requests: Sequence[Schedule], operators: Sequence[str] = ()
) -> dict[str, StoredJob]:
    """Create and reschedule jobs, and begin new lives of those that have ended. Call it inside a transaction, with one
    request per id. Returns the jobs as they stand afterwards.

    After the commit: every id has a row with the highest revision seen, and a row whose revision was raised is open; a
    new life has no trigger that the cancel of an earlier one dropped; and rows of an owner have changed only for the
    owner or an operator. It waits for rows that a producer is firing, so a change applies whole or comes late.
    """
    rows = [_columns(request) for request in requests]
    applied = await connection.fetch(
        APPLY_REQUESTS,
        *(list(column) for column in zip(*rows, strict=True)),
        list(operators),
        wake_producers.NOTIFY_WITHIN_SECONDS,
    )
    jobs = {row["id"]: _applied(row) for row in applied}
    if len(jobs) < len(requests):
        jobs |= await _read_jobs(connection, [request.id for request in requests if request.id not in jobs])
    if any(job.due_soon for job in jobs.values()):
        await wake_producers.notify(connection)
    return jobs


def _columns(request: Schedule) -> tuple[object, ...]:
    return (
        request.id,
        request.revision,
        request.topic,
        request.payload,
        request.webhook,
        request.rule.to_json() if request.rule else None,
        request.rule_index,
        request.misfire,
        request.misfire_grace_seconds,
        request.next_run_at,
        request.traceparent,
        request.user,
        request.labels,
    )


def _applied(row: asyncpg.Record) -> StoredJob:
    return StoredJob(
        JobStatus(row["status"]),
        row["revision"],
        row["next_run_at"],
        applied=True,
        created=row["created"],
        owner=row["owner"],
        due_soon=row["due_soon"],
        life=row["life"],
        before=Content(row["topic"], row["payload"], row["webhook"], row["rule"], row["run_before"], row["labels"])
        if row["existed"]
        else None,
    )


# due_soon: the job is due about now, and a claim may have skipped its row while this transaction held the lock.
READ_JOBS = f"""
select id, status, {CLOSED_REVISION} as revision, next_run_at, owner, finished_at, topic, rule, labels::text,
       {HASHED_TEXTS},
       status = 'pending' and coalesce(retry_at, next_run_at) between now() - make_interval(secs => $2)
                                                                  and clock_timestamp() + make_interval(secs => $2)
       as due_soon
  from jobs
 where id = any($1::text[])
"""  # noqa: S608


async def _read_jobs(connection: Connection, ids: list[str]) -> dict[str, StoredJob]:
    """Return the jobs that APPLY_REQUESTS did not change. It has locked their rows, so they are as it saw them."""
    rows = await connection.fetch(READ_JOBS, ids, wake_producers.NOTIFY_WITHIN_SECONDS)
    return {
        row["id"]: StoredJob(
            JobStatus(row["status"]),
            row["revision"],
            row["next_run_at"],
            applied=False,
            created=False,
            owner=row["owner"],
            due_soon=row["due_soon"],
            finished_at=row["finished_at"],
            content=Content(
                row["topic"], row["payload"], row["webhook"], row["rule"], row["next_run_at"], row["labels"]
            ),
        )
        for row in rows
    }


# The update changes nothing, and still locks the rows that are there, in the order of ids like the new ones.
LOCK_OR_MARK = """
insert into jobs (id, status, revision, owner, life, topic, misfire, misfire_grace_seconds, finished_at)
select m.id, 'cancelled', m.revision, m.owner, 0, 'default', 'all', 0, now()
  from unnest($1::text[], $2::bigint[], $3::text[]) as m(id, revision, owner)
 order by m.id
on conflict (id) do update set version = jobs.version where false
returning id
"""

READ_LOCKED = f"""
select id, status, {CLOSED_REVISION} as revision, owner, next_run_at, life from jobs where id = any($1::text[])
"""  # noqa: S608


async def lock_or_mark(connection: Connection, marks: Sequence[Mark]) -> dict[str, CancelledJob]:
    """Lock the jobs of these ids, and mark the ids that have none. Call it inside a transaction, with one mark per id.
    Returns the jobs; the ids that are missing have a mark now. It waits for rows that a producer is firing.

    After the commit: every id has a row.
    """
    rows = [(mark.id, mark.revision, mark.owner) for mark in marks]
    marked = await connection.fetch(LOCK_OR_MARK, *(list(column) for column in zip(*rows, strict=True)))
    if len(marked) == len(marks):
        return {}
    others = {mark.id for mark in marks} - {row["id"] for row in marked}
    locked = await connection.fetch(READ_LOCKED, list(others))
    return {
        row["id"]: CancelledJob(
            JobStatus(row["status"]), row["revision"], row["owner"], row["next_run_at"], row["life"]
        )
        for row in locked
    }


FIND_IDS = "select id from jobs where id = any($1::text[])"


async def find_ids(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that a job has."""
    return {row["id"] for row in await connection.fetch(FIND_IDS, ids)}


# A cancel leaves the request of the job readable. A job that has ended keeps its end: only its revision rises.
CANCEL = """
update jobs
   set status = case when jobs.status = 'done' then jobs.status else 'cancelled' end,
       revision = c.revision,
       next_run_at = null,
       finished_at = coalesce(jobs.finished_at, now()),
       retry_at = null,
       refusals = 0,
       version = jobs.version + 1,
       updated_at = now()
  from unnest($1::text[], $2::bigint[]) as c(id, revision)
 where jobs.id = c.id and (jobs.status in ('pending', 'paused') or jobs.revision < c.revision)
"""


async def store_cancels(connection: Connection, revisions: Mapping[str, int], locked: Collection[str]) -> None:
    """Cancel the jobs with these revisions, which must be locked.

    After the commit: they are cancelled, if they were open, and requests up to these revisions change nothing.
    """
    if revisions:
        await connection.execute(CANCEL, list(revisions), list(revisions.values()))
    if unchanged := [job_id for job_id in locked if job_id not in revisions]:
        await wake_producers.notify_if_held_up(connection, unchanged)


async def database_now(connection: Connection) -> datetime:
    """Return the time by Postgres' clock."""
    now: datetime = await connection.fetchval("select now()")
    return now
