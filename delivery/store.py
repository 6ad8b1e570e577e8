"""The delivery service's SQL for open deliveries: storing, claiming and recording.

`coalesce($n, now())`: production passes null, and Postgres' clock decides what is due; tests pass an instant.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from delivery.dispatch.local_queue import Room
from delivery.due_events import NewDelivery
from delivery.model import Delivery
from delivery.updates import DeliveryUpdate
from shared.database import Connection

# A claim must cost the same whatever waits, so its plan must not depend on what the statistics say, or said when the
# statement was first planned: always by the indexes that were made for it.
PLANNER = {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}

# It returns one array and not as many rows: that is far less to read.
INSERT_NEW = """
with inserted as (
    insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers,
                            timeout_seconds, max_retries, secret, traceparent, trigger_id)
    select n.job_id, n.idempotency_key, n.topic, n.sequence, n.due_at, n.fired_at, n.payload::json, n.url, n.host,
           n.headers::json, n.timeout_seconds, n.max_retries, n.secret, n.traceparent, n.trigger_id
      from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::text[],
                  $8::text[], $9::text[], $10::text[], $11::float8[], $12::int[], $13::text[], $14::text[],
                  $15::text[])
           as n(job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers,
                timeout_seconds, max_retries, secret, traceparent, trigger_id)
     order by n.idempotency_key
    on conflict (idempotency_key) where replay_of is null do nothing
    returning idempotency_key
)
select array_agg(idempotency_key) from inserted
"""


async def insert_new(connection: Connection, deliveries: Sequence[NewDelivery]) -> Set[str]:
    """After the commit: every key has its delivery. Returns the keys that had none before.

    In the order of keys: that is what keeps two replicas with the same events from deadlocking.
    """
    keys = await connection.fetchval(
        INSERT_NEW,
        [new.job_id for new in deliveries],
        [new.idempotency_key for new in deliveries],
        [new.topic for new in deliveries],
        [new.sequence for new in deliveries],
        [new.due_at for new in deliveries],
        [new.fired_at for new in deliveries],
        [new.payload for new in deliveries],
        [new.url for new in deliveries],
        [new.host for new in deliveries],
        [new.headers for new in deliveries],
        [new.timeout_seconds for new in deliveries],
        [new.max_retries for new in deliveries],
        [new.secret for new in deliveries],
        [new.traceparent for new in deliveries],
        [new.trigger_id for new in deliveries],
    )
    return frozenset(keys or ())


_AND_LEASE = """
update deliveries
   set status = 'PROCESSING',
       version = version + 1,
       next_attempt_at = coalesce($1::timestamptz, now()) + make_interval(secs => timeout_seconds + $2),
       updated_at = now()
  from due
 where deliveries.id = due.id and status in ('PENDING', 'PROCESSING')
returning deliveries.id, version, job_id, idempotency_key, topic, sequence, due_at, fired_at, created_at,
          coalesce($1::timestamptz, now()) as claimed_at, payload, url, host, headers, timeout_seconds, max_retries,
          retry_count, secret, traceparent, trigger_id"""

# The oldest first. Only the oldest few are looked at, so that it costs the same however many there are; if a host that
# has no room fills them all, CLAIM_ROUND finds the others behind it.
CLAIM_OLDEST = f"""
with oldest as materialized (
    select id, host, next_attempt_at from deliveries
     where finished_at is null and next_attempt_at <= coalesce($1::timestamptz, now())
     order by next_attempt_at limit $7
), placed as (
    select id, host, next_attempt_at, row_number() over (partition by host order by next_attempt_at) as place
      from oldest
), chosen as materialized (
    select placed.id
      from placed left join unnest($3::text[], $4::int[]) as exception(host, room) on exception.host = placed.host
     where placed.place <= coalesce(exception.room, $5)
     order by placed.next_attempt_at limit $6
), due as materialized (
    select d.id
      from chosen
     cross join lateral (
            select id from deliveries
             where id = chosen.id and status in ('PENDING', 'PROCESSING')
               and next_attempt_at <= coalesce($1::timestamptz, now())
               for no key update skip locked) as d
), leased as ({_AND_LEASE}
)
select leased.*, (select count(*) from oldest) as looked_at from (values (1)) as always left join leased on true
"""  # noqa: S608 - put together from constants

# Host by host: `hosts` steps over the index from one host to the next, and ends as soon as `due` has what it needs.
# What a host has waiting does not matter, only whether it has something; a host without room is stepped over like one
# without rows.
CLAIM_ROUND = f"""
with recursive hosts(host) as (
    (select host from deliveries where status in ('PENDING', 'PROCESSING') and host > $7 order by host limit 1)
    union all
    select (select d.host from deliveries d
             where d.status in ('PENDING', 'PROCESSING') and d.host > hosts.host order by d.host limit 1)
      from hosts where hosts.host is not null
), due as materialized (
    select d.id
      from hosts
      left join unnest($3::text[], $4::int[]) as exception(host, room) on exception.host = hosts.host
     cross join lateral (
            select id from deliveries
             where status in ('PENDING', 'PROCESSING') and host = hosts.host
               and next_attempt_at <= coalesce($1::timestamptz, now())
             order by next_attempt_at
             limit coalesce(exception.room, $5)
               for no key update skip locked) as d
     where hosts.host is not null and coalesce(exception.room, $5) > 0
     limit $6
)
{_AND_LEASE}
"""  # noqa: S608


async def claim_oldest(
    connection: Connection, room: Room, lease_margin: float, look_at: int, now: datetime | None = None
) -> tuple[list[Delivery], int]:
    """After the commit: the rows that are returned, new, retryable and abandoned alike, are leased to this process for
    the call's own timeout and the margin from now. Also returns how many due rows were looked at, `look_at` at most.
    """
    rows = await connection.fetch(CLAIM_OLDEST, *_bounds(room, lease_margin, now), look_at)
    return [_delivery(row) for row in rows if row["id"] is not None], rows[0]["looked_at"]


async def claim_round(
    connection: Connection, room: Room, lease_margin: float, after_host: str, now: datetime | None = None
) -> list[Delivery]:
    """The same for hosts that come after the given one in the order of names, each up to its room."""
    rows = await connection.fetch(CLAIM_ROUND, *_bounds(room, lease_margin, now), after_host)
    return [_delivery(row) for row in rows]


def _bounds(room: Room, lease_margin: float, now: datetime | None) -> tuple[object, ...]:
    hosts, rooms = list(room.exceptions.keys()), list(room.exceptions.values())
    return now, lease_margin, hosts, rooms, room.per_host, room.total


def _delivery(row: asyncpg.Record) -> Delivery:
    columns = dict(row)
    columns.pop("looked_at", None)
    return Delivery(**columns)


NEXT_DUE = """
select extract(epoch from min(next_attempt_at) - now()) from deliveries
 where finished_at is null and next_attempt_at > now()
"""


async def seconds_until_next(connection: Connection) -> float | None:
    """By Postgres' clock. What is due already was claimed, or its host has no room: not worth waking for."""
    seconds = await connection.fetchval(NEXT_DUE)
    return None if seconds is None else float(seconds)


# The guard on version: a worker that lost its lease finds no row, and neither its attempt nor its outcome is written.
RECORD = """
with outcome as (
    select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::int[], $5::interval[], $6::text[],
                         $7::timestamptz[], $8::float8[], $9::int[], $10::text[], $11::bytea[])
        as o(id, version, status, retry_count, pause, reason, started_at, duration_seconds, status_code, error, answer)
), recorded as (
    update deliveries d
       set status = o.status,
           version = d.version + 1,
           retry_count = o.retry_count,
           next_attempt_at = clock_timestamp() + o.pause,
           failure_reason = case when o.status = 'FAILED' then o.reason end,
           finished_at = case when o.status in ('COMPLETED', 'FAILED') then now() end,
           updated_at = now()
      from outcome o
     where d.id = o.id and d.version = o.version and d.status = 'PROCESSING'
    returning d.id, d.status, o.version, o.retry_count, o.started_at, o.duration_seconds, o.status_code, o.error,
              o.answer
), attempt as (
    insert into delivery_attempts (delivery_id, number, started_at, duration_seconds, status_code, error, answer)
    select id, retry_count + case when status = 'PROCESSING' then 0 else 1 end, started_at, duration_seconds,
           status_code, error, answer
      from recorded where started_at is not null
), announcement as (
    insert into delivery_announcements (delivery_id) select id from recorded where status in ('COMPLETED', 'FAILED')
)
select array_agg(id) as ids, array_agg(version) as versions from recorded
"""


async def record(connection: Connection, updates: Sequence[DeliveryUpdate]) -> set[tuple[int, int]]:
    """After the commit: attempts and new states of all deliveries whose lease was still held, and a row to announce for
    each that ended. Returns the ids and versions of those deliveries.
    """
    rows = [
        (
            r.delivery.id,
            r.delivery.version,
            r.status,
            r.retry_count,
            r.pause,
            r.reason,
            r.attempt.started_at if r.attempt else None,
            r.attempt.duration.total_seconds() if r.attempt else None,
            r.attempt.status_code if r.attempt else None,
            r.attempt.error if r.attempt else None,
            r.attempt.answer if r.attempt else None,
        )
        for r in updates
    ]
    columns = (list(column) for column in zip(*rows, strict=True))
    held = await connection.fetchrow(RECORD, *columns)
    return set(zip(held["ids"], held["versions"], strict=True)) if held and held["ids"] else set()


COUNT_OPEN = """
select count(*) as deliveries, min(due_at) as oldest
  from (select due_at from deliveries where finished_at is null order by next_attempt_at limit $1) as counted
"""


async def count_open(connection: Connection, up_to: int) -> tuple[int, datetime | None]:
    """Counted up to a bound: a start after a long downtime must not begin with a scan of millions."""
    row = await connection.fetchrow(COUNT_OPEN, up_to)
    return (row["deliveries"], row["oldest"]) if row else (0, None)


# Both parts stop at their bound, whatever the table holds.
SAMPLE = """
with unfinished as (
    select count(*) as deliveries from (
        select from deliveries where finished_at is null and next_attempt_at > '-infinity'
         order by next_attempt_at limit $1) as counted
), overdue as (
    select count(*) as deliveries, min(next_attempt_at) as oldest from (
        select next_attempt_at from deliveries where finished_at is null and next_attempt_at <= now()
         order by next_attempt_at limit $1) as counted
)
select unfinished.deliveries as open,
       overdue.deliveries as overdue,
       coalesce(extract(epoch from now() - overdue.oldest), 0) as oldest_overdue_seconds,
       coalesce(pg_stat_get_dead_tuples('deliveries'::regclass), 0) as dead_rows
  from unfinished, overdue
"""


@dataclass(frozen=True, slots=True)
class Sample:
    open: int
    overdue: int
    oldest_overdue_seconds: float
    dead_rows: int


async def sample_deliveries(connection: Connection, up_to: int) -> Sample:
    """How much there is to do, at a cost that does not grow with it: counted up to a bound."""
    row = await connection.fetchrow(SAMPLE, up_to)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    return Sample(row["open"], row["overdue"], float(row["oldest_overdue_seconds"]), row["dead_rows"])
