"""The consumer's SQL for pauses, resumes and triggers. They first lock their jobs in the order of ids: they wait for
jobs that a producer is firing, two consumers cannot deadlock, and the next statement sees the committed rows.
"""

from collections.abc import Collection, Mapping, Sequence

import asyncpg

from consumer.commands.parse import Trigger
from consumer.commands.pause_and_trigger import LockedJob, PauseChange, StoredTriggers, TriggerKey, first_positions
from shared.contract.job_status import OPEN, JobStatus
from shared.postgres import wake_producers
from shared.postgres.pool import Connection

LOCK_JOBS = """
select id, status, next_run_at, owner, revision, pause_revision
  from jobs where id = any($1::text[]) order by id for no key update
"""


async def lock_jobs(connection: Connection, ids: Collection[str]) -> dict[str, LockedJob]:
    """Lock jobs until the transaction ends, and return them. An id without a job is missing."""
    rows = await connection.fetch(LOCK_JOBS, sorted(ids))
    return {
        row["id"]: LockedJob(
            JobStatus(row["status"]), row["next_run_at"], row["owner"], row["revision"], row["pause_revision"]
        )
        for row in rows
    }


PAUSE_OR_RESUME = """
update jobs
   set status = w.status,
       pause_revision = w.pause_revision,
       retry_at = case when jobs.status = w.status then jobs.retry_at end,
       refusals = case when jobs.status = w.status then jobs.refusals else 0 end,
       version = jobs.version + 1,
       updated_at = now()
  from unnest($1::text[], $2::text[], $3::bigint[]) as w(id, status, pause_revision)
 where jobs.id = w.id and jobs.status in ('pending', 'paused')
returning jobs.id, jobs.status = 'pending' and next_run_at <= now() + make_interval(secs => $4) as due_soon
"""


async def store_pauses(connection: Connection, changes: Mapping[str, PauseChange], locked: Collection[str]) -> None:
    """Pause and resume the jobs that change, which must be locked.

    After the commit: they are paused, or pending, as the last command for each of them says, and their pause_revision
    is the highest of those commands.
    """
    changed: list[asyncpg.Record] = []
    if changes:
        changed = await connection.fetch(
            PAUSE_OR_RESUME,
            list(changes),
            [change.status for change in changes.values()],
            [change.pause_revision for change in changes.values()],
            wake_producers.NOTIFY_WITHIN_SECONDS,
        )
    if any(row["due_soon"] for row in changed):
        await wake_producers.notify(connection)
    elif unchanged := set(locked) - {row["id"] for row in changed}:
        await wake_producers.notify_if_held_up(connection, unchanged)


# Triggers are numbered within their job. The count is a column of the job, so retention, which deletes old triggers,
# does not start it anew.
INSERT_TRIGGERS = """
with added as (
    select a.job_id, a.trigger_id, a.payload, a.traceparent, row_number() over (partition by a.job_id order by a.n) as n
      from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) with ordinality
           as a(job_id, trigger_id, payload, traceparent, by, n)
      join jobs on jobs.id = a.job_id
     where jobs.status in ('pending', 'paused')
       and (jobs.owner is null or jobs.owner = a.by or a.by = any($6::text[]))
       and not exists (select from triggers t where t.job_id = a.job_id and t.trigger_id = a.trigger_id)
), counted as (
    update jobs
       set trigger_sequence = jobs.trigger_sequence + f.number, version = jobs.version + 1, updated_at = now()
      from (select job_id, count(*) as number from added group by job_id) as f
     where jobs.id = f.job_id and jobs.status in ('pending', 'paused')
    returning jobs.id, jobs.trigger_sequence - f.number as before, jobs.life
)
insert into triggers (job_id, trigger_id, sequence, payload, traceparent, life)
select added.job_id, added.trigger_id, counted.before + added.n, added.payload::json, added.traceparent, counted.life
  from added join counted on counted.id = added.job_id
returning job_id, trigger_id
"""


async def insert_triggers(
    connection: Connection, commands: Sequence[Trigger], operators: Sequence[str]
) -> StoredTriggers:
    """Store triggers. Call it inside a transaction.

    After the commit: every trigger of an open job has one row, and each new one the next number of its job.
    """
    triggers = [commands[position] for position in first_positions(commands).values()]
    jobs = await lock_jobs(connection, {trigger.id for trigger in triggers})
    rows = [(t.id, t.trigger_id, t.payload, t.traceparent, t.user) for t in triggers]
    inserted = await connection.fetch(INSERT_TRIGGERS, *(list(column) for column in zip(*rows, strict=True)), operators)
    if inserted:
        await wake_producers.notify(connection)
    else:
        await wake_producers.notify_if_held_up(connection, jobs)
    of_ended_jobs = [trigger for trigger in triggers if trigger.id in jobs and jobs[trigger.id].status not in OPEN]
    already_known = await _read_known(connection, of_ended_jobs) if of_ended_jobs else set()
    return StoredTriggers(jobs, {(row["job_id"], row["trigger_id"]) for row in inserted}, already_known)


# A cancel drops the triggers that were not fired yet; the end of a rule does not.
READ_KNOWN = """
select t.job_id, t.trigger_id
  from unnest($1::text[], $2::text[]) as a(job_id, trigger_id)
  join triggers t on t.job_id = a.job_id and t.trigger_id = a.trigger_id
  join jobs j on j.id = t.job_id
 where t.fired_at is not null or j.status <> 'cancelled'
"""


async def _read_known(connection: Connection, triggers: Sequence[Trigger]) -> set[TriggerKey]:
    """Return the keys of those triggers, of jobs that have ended, that were fired or still will be."""
    rows = await connection.fetch(READ_KNOWN, [t.id for t in triggers], [t.trigger_id for t in triggers])
    return {(row["job_id"], row["trigger_id"]) for row in rows}
