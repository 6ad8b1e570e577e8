"""How many schedules run next in each part of the minute, hour, day or week to come. Each job counts once, by its next
run. A part that has more than MAX_COUNTED_PER_PART is told by Postgres' own estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import orjson

from shared.postgres.pool import Connection

MAX_COUNTED_PER_PART = 500


class Ahead(StrEnum):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


# The length of a part, and how many there are.
PARTS = {
    Ahead.MINUTE: (timedelta(seconds=2), 30),
    Ahead.HOUR: (timedelta(minutes=1), 60),
    Ahead.DAY: (timedelta(minutes=30), 48),
    Ahead.WEEK: (timedelta(hours=3), 56),
}


@dataclass(frozen=True, slots=True)
class Part:
    """How many jobs run next within a part. `is_about`: the number is an estimate."""

    begins_at: datetime
    ends_at: datetime
    jobs: int
    is_about: bool


COUNT_PARTS = """
select n, (select count(*) from (
               select from jobs where status = 'pending' and retry_at is null
                  and next_run_at >= $1::timestamptz + n * $2::interval
                  and next_run_at < $1::timestamptz + (n + 1) * $2::interval
                order by next_run_at limit $4) as counted) as jobs
  from generate_series(0, $3::int - 1) as n order by n
"""
# Of part $n, beginning at $n; the last parameter is the length of all.
ESTIMATE_PART = """
select 1 from jobs
 where status = 'pending' and retry_at is null and next_run_at >= {begin}::timestamptz
   and next_run_at < {begin}::timestamptz + {length}::interval
"""


NOW = "select now()"


async def read_future(connection: Connection, ahead: Ahead) -> list[Part]:
    """Return the parts of the time to come, the nearest first."""
    now: datetime = await connection.fetchval(NOW)
    length, number = PARTS[ahead]
    counted = [
        (now + row["n"] * length, row["jobs"])
        for row in await connection.fetch(COUNT_PARTS, now, length, number, MAX_COUNTED_PER_PART)
    ]
    full = [begins_at for begins_at, jobs in counted if jobs == MAX_COUNTED_PER_PART]
    estimates = dict(zip(full, await _estimate(connection, full, length), strict=True))
    return [
        Part(begins_at, begins_at + length, max(jobs, estimates.get(begins_at, 0)), begins_at in estimates)
        for begins_at, jobs in counted
    ]


async def _estimate(connection: Connection, begin_at: Sequence[datetime], length: timedelta) -> list[int]:
    """Ask Postgres' planner, once for all parts."""
    if not begin_at:
        return []
    last = f"${len(begin_at) + 1}"
    parts = [ESTIMATE_PART.format(begin=f"${number}", length=last) for number in range(1, len(begin_at) + 1)]
    # Scans by several processes would be told in another order.
    await connection.execute("set local max_parallel_workers_per_gather = 0")
    statement = "explain (format json) " + " union all ".join(parts)
    plan = orjson.loads(await connection.fetchval(statement, *begin_at, length))[0]["Plan"]
    scans = plan["Plans"] if plan["Node Type"] == "Append" else [plan]
    return [int(scan["Plan Rows"]) for scan in scans]


DUE_WITHIN = """
select (select count(*) from (select from jobs where status = 'pending' and retry_at is null and next_run_at >= $1
                                 and next_run_at < $1 + ahead order by next_run_at limit $3) as counted) as jobs
  from unnest($2::interval[]) with ordinality as given (ahead, place) order by place
"""
MAX_DUE_COUNTED = 10_000


async def count_due_within(connection: Connection, now: datetime, *ahead: timedelta) -> list[int]:
    """Return how many jobs run next within each of the times, up to MAX_DUE_COUNTED."""
    rows = await connection.fetch(DUE_WITHIN, now, list(ahead), MAX_DUE_COUNTED)
    return [row["jobs"] for row in rows]
