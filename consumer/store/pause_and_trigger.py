"""The consumer's SQL for pauses, resumes and triggers. Each first locks its jobs in the order of ids, which waits for
those that a producer is firing and keeps two consumers from deadlocking; the statement after it sees them as they are.
"""

from collections.abc import Collection, Sequence

from consumer.commands.parse import Pause, Resume, Trigger
from consumer.commands.pause_and_trigger import LockedJob, StoredTriggers, TriggerKey, first_of_each, last_wishes
from shared.contract.job_status import OPEN, JobStatus
from shared.postgres import wake_producers
from shared.postgres.pool import Connection

LOCK_JOBS = """
select id, status, next_run_at, owner from jobs where id = any($1::text[]) order by id for no key update
"""


async def _lock_jobs(connection: Connection, ids: Collection[str]) -> dict[str, LockedJob]:
    rows = await connection.fetch(LOCK_JOBS, sorted(ids))
    return {row["id"]: LockedJob(JobStatus(row["status"]), row["next_run_at"], row["owner"]) for row in rows}


STEER = """
update jobs
   set status = w.status, retry_at = null, refusals = 0, version = jobs.version + 1, updated_at = now()
  from unnest($1::text[], $2::text[], $3::text[]) as w(id, status, by)
 where jobs.id = w.id and jobs.status in ('pending', 'paused') and jobs.status <> w.status
   and (jobs.owner is null or jobs.owner = w.by or w.by = any($4::text[]))
returning jobs.id, jobs.status = 'pending' and next_run_at <= now() + make_interval(secs => $5) as due_soon
"""


async def steer_jobs(
    connection: Connection, commands: Sequence[Pause | Resume], operators: Sequence[str]
) -> dict[str, LockedJob]:
    """After the commit: open jobs are paused, or pending, as the last command for each says. Returns the jobs as they
    were. Call it inside a transaction.
    """
    wishes = last_wishes(commands)
    jobs = await _lock_jobs(connection, wishes)
    steered = await connection.fetch(
        STEER,
        list(wishes),
        [JobStatus.PAUSED if isinstance(wish, Pause) else JobStatus.PENDING for wish in wishes.values()],
        [wish.user for wish in wishes.values()],
        operators,
        wake_producers.NOTIFY_WITHIN_SECONDS,
    )
    if any(row["due_soon"] for row in steered):
        await wake_producers.notify(connection)
    elif left_alone := jobs.keys() - {row["id"] for row in steered}:
        await wake_producers.notify_if_held_up(connection, left_alone)
    return jobs


# A trigger counts within its job for good, whatever retention deletes: the count is kept with the job.
INSERT_TRIGGERS = """
with fresh as (
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
      from (select job_id, count(*) as number from fresh group by job_id) as f
     where jobs.id = f.job_id and jobs.status in ('pending', 'paused')
    returning jobs.id, jobs.trigger_sequence - f.number as before
)
insert into triggers (job_id, trigger_id, sequence, payload, traceparent)
select fresh.job_id, fresh.trigger_id, counted.before + fresh.n, fresh.payload::json, fresh.traceparent
  from fresh join counted on counted.id = fresh.job_id
returning job_id, trigger_id
"""


async def insert_triggers(
    connection: Connection, commands: Sequence[Trigger], operators: Sequence[str]
) -> StoredTriggers:
    """After the commit every trigger of an open job is there, once. Call it inside a transaction."""
    triggers = [commands[position] for position in first_of_each(commands).values()]
    jobs = await _lock_jobs(connection, {trigger.id for trigger in triggers})
    rows = [(t.id, t.trigger_id, t.payload, t.traceparent, t.user) for t in triggers]
    inserted = await connection.fetch(INSERT_TRIGGERS, *(list(column) for column in zip(*rows, strict=True)), operators)
    if inserted:
        await wake_producers.notify(connection)
    else:
        await wake_producers.notify_if_held_up(connection, jobs)
    of_the_ended = [trigger for trigger in triggers if trigger.id in jobs and jobs[trigger.id].status not in OPEN]
    heeded = await _read_heeded(connection, of_the_ended) if of_the_ended else set()
    return StoredTriggers(jobs, {(row["job_id"], row["trigger_id"]) for row in inserted}, heeded)


# A cancel drops what has not rung; the end of a rule does not.
READ_HEEDED = """
select t.job_id, t.trigger_id
  from unnest($1::text[], $2::text[]) as a(job_id, trigger_id)
  join triggers t on t.job_id = a.job_id and t.trigger_id = a.trigger_id
  join jobs j on j.id = t.job_id
 where t.fired_at is not null or j.status <> 'cancelled'
"""


async def _read_heeded(connection: Connection, triggers: Sequence[Trigger]) -> set[TriggerKey]:
    """Which of them rang, or are still to ring."""
    rows = await connection.fetch(READ_HEEDED, [t.id for t in triggers], [t.trigger_id for t in triggers])
    return {(row["job_id"], row["trigger_id"]) for row in rows}
