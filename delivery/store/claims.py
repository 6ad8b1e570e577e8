"""SQL that claims deliveries which are due, with a lease.

`coalesce($n, now())`: production passes null, so Postgres' clock decides what is due; tests pass an instant.
"""

from datetime import datetime

import asyncpg

from delivery.dispatch.local_queue import Room
from delivery.model import Delivery
from shared.postgres.pool import Connection

# The cost of a claim must not grow with the table. So its plan must not depend on the table's statistics, neither on
# the newest nor on those of the moment when the statement was first planned: it always uses the indexes made for it.
DELIVERY_PLANNER_SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


_LEASE_DUE_ROWS = """
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

# The oldest rows first. The statement reads only a limited number of them, so its cost does not grow with the table. If
# hosts without room have all of these rows, CLAIM_ROUND finds the rows of other hosts behind them.
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
), leased as ({_LEASE_DUE_ROWS}
)
select leased.*, (select count(*) from oldest) as rows_read from (values (1)) as always left join leased on true
"""  # noqa: S608 - put together from constants

# Host by host: `hosts` steps through the index from one host to the next, and ends as soon as `due` has enough rows.
# Its cost does not depend on the number of rows of a host; a host without room is skipped like one without rows.
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
{_LEASE_DUE_ROWS}
"""  # noqa: S608


async def claim_oldest(
    connection: Connection, room: Room, lease_margin: float, max_rows_read: int, now: datetime | None = None
) -> tuple[list[Delivery], int]:
    """Claim the oldest rows that are due: new ones, ones that wait for a retry, and ones whose lease has ended.

    After the commit: the returned rows are leased to this process from now on, for the call's own timeout and the
    margin. Also returns how many due rows were read, at most `max_rows_read`.
    """
    rows = await connection.fetch(CLAIM_OLDEST, *_bounds(room, lease_margin, now), max_rows_read)
    return [_delivery(row) for row in rows if row["id"] is not None], rows[0]["rows_read"]


async def claim_round(
    connection: Connection, room: Room, lease_margin: float, after_host: str, now: datetime | None = None
) -> list[Delivery]:
    """Claim rows of the hosts that come after the given one in the order of names, each up to its room.

    After the commit: the returned rows are leased to this process, as after `claim_oldest`.
    """
    rows = await connection.fetch(CLAIM_ROUND, *_bounds(room, lease_margin, now), after_host)
    return [_delivery(row) for row in rows]


def _bounds(room: Room, lease_margin: float, now: datetime | None) -> tuple[object, ...]:
    hosts, rooms = list(room.exceptions.keys()), list(room.exceptions.values())
    return now, lease_margin, hosts, rooms, room.per_host, room.total


def _delivery(row: asyncpg.Record) -> Delivery:
    columns = dict(row)
    columns.pop("rows_read", None)
    return Delivery(**columns)


NEXT_DUE_DELIVERY = """
select extract(epoch from min(next_attempt_at) - now()) from deliveries
 where finished_at is null and next_attempt_at > now()
"""


async def seconds_until_next(connection: Connection) -> float | None:
    """Return the seconds until the next row is due, by Postgres' clock. None: no row is due later.

    It leaves out rows that are due already: they are claimed, or their host has no room.
    """
    seconds = await connection.fetchval(NEXT_DUE_DELIVERY)
    return None if seconds is None else float(seconds)
