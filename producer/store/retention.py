"""The producer's SQL that deletes jobs that ended, and triggers that were fired, long ago."""

from datetime import timedelta

from shared.postgres.pool import Connection

# Deleting a job deletes its triggers. So a job that is done stays while one of its triggers is still to be fired; a job
# that was cancelled does not, because its triggers are dropped anyway. OFFSET keeps the planner from reading all
# triggers instead of each job's by key.
DELETE_FINISHED_JOBS = """
delete from jobs where id in (
    select id from jobs where status <> 'pending' and finished_at < now() - $1::interval
       and (status = 'cancelled'
            or not exists (select from triggers t where t.job_id = jobs.id and t.fired_at is null offset 0))
     order by finished_at limit $2 for update skip locked)
"""


async def delete_finished(connection: Connection, older_than: timedelta, limit: int) -> int:
    """After the commit: up to `limit` jobs that ended longer ago than `older_than` are gone. Returns how many; a small
    limit keeps the transaction short.
    """
    return int((await connection.execute(DELETE_FINISHED_JOBS, older_than, limit)).split()[-1])


DELETE_FIRED = """
delete from triggers where (job_id, trigger_id) in (
    select job_id, trigger_id from triggers where fired_at is not null and fired_at < now() - $1::interval
     order by fired_at limit $2 for update skip locked)
"""


async def delete_fired(connection: Connection, older_than: timedelta, limit: int) -> int:
    """After the commit: up to `limit` triggers that were fired longer ago than `older_than` are gone. Returns how many.
    Triggers of a job that `delete_finished` deletes are gone with the job.
    """
    return int((await connection.execute(DELETE_FIRED, older_than, limit)).split()[-1])
