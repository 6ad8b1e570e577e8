"""SQL that counts open deliveries, up to a limit."""

from dataclasses import dataclass
from datetime import datetime

from shared.postgres.pool import Connection

COUNT_OPEN = """
select count(*) as deliveries, min(due_at) as oldest
  from (select due_at from deliveries where finished_at is null order by next_attempt_at limit $1) as counted
"""


async def count_open(connection: Connection, up_to: int) -> tuple[int, datetime | None]:
    """Count open deliveries up to a limit, and return the earliest due moment of those counted.

    The limit matters at a start after a long downtime, when there may be millions.
    """
    row = await connection.fetchrow(COUNT_OPEN, up_to)
    return (row["deliveries"], row["oldest"]) if row else (0, None)


# Both counts stop at their limit, so the cost does not grow with the table.
SAMPLE_DELIVERIES = """
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
    """How many deliveries are open and overdue; the values of four gauges."""

    open: int
    overdue: int
    oldest_overdue_seconds: float
    dead_rows: int


async def sample_deliveries(connection: Connection, up_to: int) -> Sample:
    """Count open and overdue deliveries up to a limit, at a cost that does not grow with their number."""
    row = await connection.fetchrow(SAMPLE_DELIVERIES, up_to)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    return Sample(row["open"], row["overdue"], float(row["oldest_overdue_seconds"]), row["dead_rows"])
