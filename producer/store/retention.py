"""The producer's SQL that deletes jobs that ended, and triggers that were fired, long ago."""

from datetime import timedelta

from shared.postgres.pool import Connection

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


DELETE_FIRED = """
delete from triggers where (job_id, trigger_id) in (
    select job_id, trigger_id from triggers where fired_at is not null and fired_at < now() - $1::interval
     order by fired_at limit $2 for update skip locked)
"""


async def delete_fired(connection: Connection, older_than: timedelta, limit: int) -> int:
    """How many are gone. Those of a job that retention deletes go with it."""
    return int((await connection.execute(DELETE_FIRED, older_than, limit)).split()[-1])
