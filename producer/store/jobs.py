"""The producer's SQL for jobs that were fired: settling them, and deleting the ones that ended long ago."""

from collections.abc import Sequence
from datetime import timedelta

from producer.decisions.settle import JobUpdate
from shared.postgres.pool import Connection

# The claims are meant to walk an index and stop at their limit, and nothing else. Left to itself the planner may think,
# by statistics that were true an hour ago, that reading everything that is due and sorting it is cheaper.
PRODUCER_PLANNER_SETTINGS = {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off"}

SETTLE = """
update jobs
   set status = s.status,
       next_run_at = s.next_run_at,
       rule_index = coalesce(s.rule_index, jobs.rule_index),
       sequence = s.sequence,
       last_due_at = coalesce(s.last_due_at, jobs.last_due_at),
       refusals = s.refusals,
       retry_at = clock_timestamp() + s.pause,
       finished_at = case when s.status = 'done' then now() end,
       updated_at = now(),
       version = jobs.version + 1
  from unnest($1::text[], $2::bigint[], $3::text[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::timestamptz[],
              $8::int[], $9::interval[])
       as s(id, version, status, next_run_at, rule_index, sequence, last_due_at, refusals, pause)
 where jobs.id = s.id and jobs.version = s.version and jobs.status = 'pending'
"""


# What most rows come to: a one-shot that rang. Postgres knows the rest: two arrays instead of nine.
FINISH = """
update jobs
   set status = 'done',
       next_run_at = null,
       sequence = jobs.sequence + 1,
       last_due_at = jobs.next_run_at,
       refusals = 0,
       retry_at = null,
       finished_at = now(),
       updated_at = now(),
       version = jobs.version + 1
  from unnest($1::text[], $2::bigint[]) as s(id, version)
 where jobs.id = s.id and jobs.version = s.version and jobs.status = 'pending'
"""


async def settle_jobs(connection: Connection, updates: Sequence[JobUpdate]) -> None:
    """After the commit: confirmed occurrences are behind, each row stands at its next one, or is done."""
    finished = [s for s in updates if s.rang_its_only]
    if finished:
        await connection.execute(FINISH, [s.id for s in finished], [s.version for s in finished])
    if len(finished) == len(updates):
        return
    rows = [
        (
            s.id,
            s.version,
            s.status,
            s.next.at if s.next else None,
            s.next.index if s.next else None,
            s.sequence,
            s.last_due_at,
            s.refusals,
            s.pause,
        )
        for s in updates
        if not s.rang_its_only
    ]
    await connection.execute(SETTLE, *(list(column) for column in zip(*rows, strict=True)))


# A job that is done stays while a trigger of it is still to ring, which would go with it. One that was cancelled takes
# along what it dropped. OFFSET keeps the planner from reading all triggers at once, in place of each job's by key.
DELETE_FINISHED_JOBS = """
delete from jobs where id in (
    select id from jobs where status <> 'pending' and finished_at < now() - $1::interval
       and (status = 'cancelled'
            or not exists (select from triggers t where t.job_id = jobs.id and t.fired_at is null offset 0))
     order by finished_at limit $2 for update skip locked)
"""


async def delete_finished(connection: Connection, older_than: timedelta, limit: int) -> int:
    """How many rows are gone. Small batches: each is a short transaction."""
    return int((await connection.execute(DELETE_FINISHED_JOBS, older_than, limit)).split()[-1])
