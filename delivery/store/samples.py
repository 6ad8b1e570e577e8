"""SQL that counts what there is to do, up to a bound."""

from dataclasses import dataclass
from datetime import datetime

from shared.postgres.pool import Connection

COUNT_OPEN = """
select count(*) as deliveries, min(due_at) as oldest
  from (select due_at from deliveries where finished_at is null order by next_attempt_at limit $1) as counted
"""


async def count_open(connection: Connection, up_to: int) -> tuple[int, datetime | None]:
    """Counted up to a bound: a start after a long downtime must not begin with a scan of millions."""
    row = await connection.fetchrow(COUNT_OPEN, up_to)
    return (row["deliveries"], row["oldest"]) if row else (0, None)


# Both parts stop at their bound, whatever the table holds.
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
    open: int
    overdue: int
    oldest_overdue_seconds: float
    dead_rows: int


async def sample_deliveries(connection: Connection, up_to: int) -> Sample:
    """How much there is to do, at a cost that does not grow with it: counted up to a bound."""
    row = await connection.fetchrow(SAMPLE_DELIVERIES, up_to)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    return Sample(row["open"], row["overdue"], float(row["oldest_overdue_seconds"]), row["dead_rows"])
