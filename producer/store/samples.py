"""The producer's SQL that counts jobs. Each count stops at a bound, so its cost does not grow with the table."""

from dataclasses import dataclass
from datetime import datetime

from shared.contract.names import due_routing_key
from shared.postgres.pool import Connection

COUNT_OVERDUE = """
select count(*) as jobs, min(next_run_at) as oldest,
       (select next_run_at from jobs where status = 'pending' and retry_at is null and next_run_at <= now()
         order by next_run_at desc limit 1) as newest
  from (select next_run_at from jobs where status = 'pending' and retry_at is null and next_run_at <= now()
         order by next_run_at limit $1) as counted
"""


@dataclass(frozen=True, slots=True)
class Overdue:
    """How many jobs are overdue, and the due moments of the oldest and the newest."""

    jobs: int
    oldest: datetime | None
    newest: datetime | None


async def count_overdue(connection: Connection, up_to: int) -> Overdue:
    """Count the overdue jobs up to a bound: a start after a long downtime must not begin with a scan of millions."""
    row = await connection.fetchrow(COUNT_OVERDUE, up_to)
    if row is None:
        return Overdue(0, None, None)
    return Overdue(row["jobs"], row["oldest"], row["newest"])


# Each part stops at the bound, whatever the table holds. Beyond the bound, the number of pending jobs is Postgres' own
# estimate of the rows in the partial indexes, which vacuum and analyze keep up to date. Refused jobs do not count for
# the oldest overdue one, because no producer can do anything about them. Paused jobs are the rows of the index
# jobs_finished that have no end.
SAMPLE_JOBS = """
with pending as (
    select count(*) as jobs from (
        select from jobs where status = 'pending' and retry_at is null and next_run_at > '-infinity'
         order by next_run_at limit $1) as counted
), due as (
    select count(*) as jobs, min(next_run_at) as oldest from (
        select next_run_at from jobs where status = 'pending' and retry_at is null and next_run_at <= now()
         order by next_run_at limit $1) as counted
), waiting as (
    select count(*) as jobs, count(*) filter (where refusals > 0) as refused,
           min(next_run_at) filter (where refusals = 0) as oldest from (
        select next_run_at, refusals from jobs where status = 'pending' and retry_at is not null
         order by retry_at limit $1) as counted
), paused as (
    select count(*) as jobs from (
        select from jobs where status = 'paused' and finished_at is null order by finished_at limit $1) as counted
), estimate as (
    select sum(reltuples) as jobs from pg_class where oid in ('jobs_due'::regclass, 'jobs_refused'::regclass)
)
select case when pending.jobs < $1 then pending.jobs + waiting.jobs
            else greatest(pending.jobs + waiting.jobs, estimate.jobs::bigint) end as pending,
       due.jobs + waiting.jobs - waiting.refused as overdue,
       waiting.refused as refused,
       paused.jobs as paused,
       coalesce(extract(epoch from now() - least(due.oldest, waiting.oldest)), 0) as oldest_overdue_seconds,
       coalesce(pg_stat_get_dead_tuples('jobs'::regclass), 0) as dead_rows
  from pending, due, waiting, paused, estimate
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """How many jobs there are to do, and how old the oldest overdue one is that the broker has not refused."""

    pending: int
    overdue: int
    refused: int
    paused: int
    oldest_overdue_seconds: float
    dead_rows: int


async def sample_jobs(connection: Connection, up_to: int) -> Sample:
    """Count the jobs there are to do, each kind up to a bound."""
    row = await connection.fetchrow(SAMPLE_JOBS, up_to)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    oldest = max(0.0, float(row["oldest_overdue_seconds"]))
    return Sample(row["pending"], row["overdue"], row["refused"], row["paused"], oldest, row["dead_rows"])


COUNT_REFUSED_BY_KEY = """
select topic, has_webhook, count(*) as jobs
  from (select topic, webhook is not null as has_webhook, refusals from jobs
         where status = 'pending' and retry_at is not null order by retry_at limit $1) as waiting
 where refusals > 0
 group by topic, has_webhook order by jobs desc, topic limit $2
"""


async def count_refused_by_key(connection: Connection, up_to: int, keys: int) -> dict[str, int]:
    """Return the routing keys with the most refused jobs, and how many jobs they have, counted up to a bound."""
    rows = await connection.fetch(COUNT_REFUSED_BY_KEY, up_to, keys)
    return {due_routing_key(row["topic"], has_webhook=row["has_webhook"]): row["jobs"] for row in rows}
