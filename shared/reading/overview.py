"""How the installation stands: what waits, what is late, what failed, and which processes run. For the command line and
the console. Each count stops at MAX_COUNTED, and each query walks an index or reads a bounded number of pages.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import orjson

from shared.postgres.instances import SEEN_EVERY_SECONDS
from shared.postgres.migrate import current_version, newest_version
from shared.postgres.pool import Connection
from shared.reading.delayed_numbers import MessageNumbers, count_messages

MAX_COUNTED = 10_000
# A process that has missed so many signs of life in a row is taken for dead or frozen.
MISSED_SIGNS = 3
SILENT_AFTER = timedelta(seconds=MISSED_SIGNS * SEEN_EVERY_SECONDS)
FAILED_WITHIN = timedelta(hours=24)
LATENESS_WITHIN = timedelta(minutes=5)
# The newest pages of the history that are read for the lateness: some ten thousands of entries.
MAX_HISTORY_PAGES = 250


@dataclass(frozen=True, slots=True)
class JobNumbers:
    """How many jobs wait, each kind up to MAX_COUNTED. An overdue job waits for a producer, and a refused one for the
    broker: no job is both. `overdue_since` is from when on the first of them could have been published: a request for a
    moment in the past counts from when it came. `refused_since` is the first moment of the refused ones.
    """

    pending: int
    overdue: int
    overdue_since: datetime | None
    refused: int
    refused_since: datetime | None
    paused: int


JOB_NUMBERS = """
with ready as (
    select count(*) as jobs from (
        select from jobs where status = 'pending' and retry_at is null and next_run_at > '-infinity'
         order by next_run_at limit $1) as counted
), overdue as (
    select count(*) as jobs, min(greatest(next_run_at, updated_at)) as since from (
        select next_run_at, updated_at from jobs where status = 'pending' and retry_at is null and next_run_at <= now()
         order by next_run_at limit $1) as counted
), waiting as (
    select count(*) as jobs, count(*) filter (where refusals > 0) as refused,
           min(next_run_at) filter (where refusals > 0) as refused_since,
           count(*) filter (where refusals = 0) as overdue,
           min(greatest(next_run_at, updated_at)) filter (where refusals = 0) as since from (
        select next_run_at, updated_at, refusals from jobs where status = 'pending' and retry_at is not null
         order by retry_at limit $1) as counted
), paused as (
    select count(*) as jobs from (
        select from jobs where status = 'paused' and next_run_at > '-infinity' order by next_run_at limit $1) as counted
), estimate as (
    select sum(reltuples)::bigint as jobs from pg_class where oid in ('jobs_due'::regclass, 'jobs_refused'::regclass)
)
select case when ready.jobs < $1 then ready.jobs + waiting.jobs
            else greatest(ready.jobs + waiting.jobs, estimate.jobs) end as pending,
       overdue.jobs + waiting.overdue as overdue,
       least(overdue.since, waiting.since) as overdue_since,
       waiting.refused as refused, waiting.refused_since, paused.jobs as paused
  from ready, overdue, waiting, paused, estimate
"""


async def count_open_jobs(connection: Connection) -> JobNumbers:
    """Count what waits. Beyond MAX_COUNTED, `pending` is Postgres' own estimate."""
    row = await connection.fetchrow(JOB_NUMBERS, MAX_COUNTED)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    return JobNumbers(**dict(row))


@dataclass(frozen=True, slots=True)
class DeliveryNumbers:
    """How many webhook deliveries are open, how many of them could be tried now and since when, and how many failed
    within the last FAILED_WITHIN and were not replayed since; each up to MAX_COUNTED.
    """

    open: int
    overdue: int
    overdue_since: datetime | None
    failed: int


DELIVERY_NUMBERS = """
with unfinished as (
    select count(*) as deliveries from (
        select from deliveries where finished_at is null and next_attempt_at > '-infinity'
         order by next_attempt_at limit $1) as counted
), overdue as (
    select count(*) as deliveries, min(next_attempt_at) as since from (
        select next_attempt_at from deliveries where finished_at is null and next_attempt_at <= now()
         order by next_attempt_at limit $1) as counted
), failed as (
    select count(*) as deliveries from (
        select from (select id from deliveries where status = 'FAILED' and finished_at > now() - $2::interval
                      order by finished_at desc limit $1) as newest
         where not exists (select from deliveries as replay where replay.replay_of = newest.id)) as counted
)
select unfinished.deliveries as open, overdue.deliveries as overdue, overdue.since as overdue_since,
       failed.deliveries as failed
  from unfinished, overdue, failed
"""


async def count_deliveries(connection: Connection) -> DeliveryNumbers:
    """Count the deliveries that are open, and those that failed and were not replayed."""
    row = await connection.fetchrow(DELIVERY_NUMBERS, MAX_COUNTED, FAILED_WITHIN)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    return DeliveryNumbers(**dict(row))


@dataclass(frozen=True, slots=True)
class Lateness:
    """How long after its moment a ScheduleDue was published: of the newest `rings` in the history, the oldest of which
    is of `since`. What was asked for, rescheduled or resumed after the moment counts from then on.
    """

    rings: int
    since: datetime
    p50: timedelta
    p99: timedelta
    longest: timedelta


TODAYS_PAGES = """
select pg_relation_size(to_regclass('history_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')))
       / current_setting('block_size')::bigint
"""
# Entries are appended, so the newest are in the last pages of today's partition, and reading from a page on needs no
# index. The bounds of `at` exclude the other partitions. What was asked for late is looked up for late rings alone.
LATENESS = """
with rings as (
    select job_id, at, due_at from history
     where ctid >= format('(%s,0)', $1::bigint)::tid and what = 'fired'
       and at >= greatest(now() - $2::interval, date_trunc('day', now() at time zone 'UTC') at time zone 'UTC')
       and at < date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' + interval '1 day'
), asked as materialized (
    select at, due_at,
           case when at > due_at + interval '1 second' then (
               select max(history.at) from history
                where history.job_id = rings.job_id and history.at > rings.due_at and history.at <= rings.at
                  and what in ('accepted', 'rescheduled', 'resumed'))
           end as asked_at
      from rings
), late as (
    select at, greatest(at - greatest(due_at, asked_at), interval '0') as by from asked
)
select count(*) as rings, min(at) as since, percentile_disc(0.5) within group (order by by) as p50,
       percentile_disc(0.99) within group (order by by) as p99, max(by) as longest
  from late
"""


async def read_lateness(connection: Connection) -> Lateness | None:
    """Return the lateness of the newest rings of today within LATENESS_WITHIN. None: the history has none. At the level
    HISTORY=changes, or off, it never has.
    """
    pages = await connection.fetchval(TODAYS_PAGES)
    if pages is None:
        return None
    row = await connection.fetchrow(LATENESS, max(0, pages - MAX_HISTORY_PAGES), LATENESS_WITHIN)
    return Lateness(**dict(row)) if row and row["rings"] else None


@dataclass(frozen=True, slots=True)
class Instance:
    """A process of a service. `silent_for` is how long ago it gave its last sign of life. `open_breakers` are the hosts
    that it does not call for so long.
    """

    instance: str
    service: str
    host: str
    version: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    silent_for: timedelta
    open_breakers: dict[str, timedelta]

    @property
    def state(self) -> str:
        """Tell alive, stopped in order, or silent: killed, frozen, or without a way to the database."""
        if self.stopped_at is not None:
            return "stopped"
        return "silent" if self.silent_for > SILENT_AFTER else "alive"


# Rows that were not seen for a week are deleted: the table has as many as processes were started since.
INSTANCES = """
select instance, service, host, version, started_at, seen_at, stopped_at, now() - seen_at as silent_for, details::text
  from service_instances where seen_at > now() - $1::interval
 order by seen_at desc limit $2
"""
MAX_INSTANCES = 1000


async def read_instances(connection: Connection, seen_within: timedelta) -> list[Instance]:
    """Return the processes that gave a sign of life within the time, by service, the last started first."""
    found = []
    for row in await connection.fetch(INSTANCES, seen_within, MAX_INSTANCES):
        values = dict(row)
        details = orjson.loads(values.pop("details") or "{}")
        breakers = {host: timedelta(seconds=left) for host, left in (details.get("open_breakers") or {}).items()}
        found.append(Instance(**values, open_breakers=breakers))
    return sorted(found, key=lambda one: (one.service, -one.started_at.timestamp()))


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of the whole installation, by one clock."""

    now: datetime
    schema_version: int
    schema_needed: int
    jobs: JobNumbers
    deliveries: DeliveryNumbers
    lateness: Lateness | None
    instances: list[Instance]
    delayed: MessageNumbers = field(default_factory=MessageNumbers)


INSTANCES_SEEN_WITHIN = timedelta(hours=1)


async def read_overview(connection: Connection) -> Overview:
    """Read how the whole installation stands. Processes that were silent for longer than INSTANCES_SEEN_WITHIN are left
    out.
    """
    return Overview(
        now=await connection.fetchval("select clock_timestamp()"),
        schema_version=await current_version(connection),
        schema_needed=newest_version(),
        jobs=await count_open_jobs(connection),
        deliveries=await count_deliveries(connection),
        lateness=await read_lateness(connection),
        instances=await read_instances(connection, INSTANCES_SEEN_WITHIN),
        delayed=await count_messages(connection),
    )
