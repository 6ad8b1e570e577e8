"""The producer's SQL for the lanes of delayed messages. `$1` of a claim or a look ahead is the cut-off for "due", as in
producer.store.lanes.

A claim locks up to `$2` rows, and loads the first of them up to `$3` bytes: a message may have a megabyte. It also
takes the table lock that settling will need, as the claims of jobs do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from producer.decisions.claim import Claim
from producer.decisions.delayed import DueMessage, Refusal
from producer.store.lanes import DUE_NOW_SECONDS, Upcoming
from shared.amqp.message import RawMessage
from shared.postgres.pool import Connection

_LOCKED = """
with table_lock as (update delayed_messages set refusals = refusals where false), due as materialized (
    select id, bytes from delayed_messages where"""
_LOADED = """
     limit $2 for update skip locked
), numbered as (
    select id, bytes, row_number() over () as place from due
), fitting as (
    select id, place, sum(bytes) over (order by place) - bytes as bytes_before, count(*) over () as found from numbered
)
select d.id, d.exchange, d.routing_key, d.header, d.body, d.due_at, d.message_id, d.name, d.refusals, f.place, f.found,
       now() as now
  from fitting f join delayed_messages d on d.id = f.id
 where f.bytes_before < $3
"""

CLAIM_DELAYED = f"""{_LOCKED} retry_at is null
       and due_at > coalesce($1::timestamptz, now()) - interval '{DUE_NOW_SECONDS} seconds'
       and due_at <= coalesce($1::timestamptz, now())
     order by due_at, id{_LOADED}"""

CLAIM_DELAYED_OVERDUE = f"""{_LOCKED} retry_at is null
       and due_at <= coalesce($1::timestamptz, now()) - interval '{DUE_NOW_SECONDS} seconds'
     order by due_at, id{_LOADED}"""

CLAIM_DELAYED_RETRY = f"""{_LOCKED} retry_at is not null
       and retry_at <= coalesce($1::timestamptz, now())
     order by retry_at, id{_LOADED}"""

NEXT_DELAYED = """
select due_at as at, now() as now from delayed_messages
 where retry_at is null and due_at > coalesce($1::timestamptz, now())
 order by due_at, id limit 1
"""

NEXT_DELAYED_RETRY = """
select retry_at as at, now() as now from delayed_messages
 where retry_at is not null and retry_at > coalesce($1::timestamptz, now())
 order by retry_at, id limit 1
"""


@dataclass(frozen=True, slots=True)
class DelayedLane:
    """A share of the due messages with claims of its own."""

    name: str
    claim_sql: str
    look_ahead_sql: str | None  # None: no row of the lane comes due by itself
    yields_to_due_now: bool = False


DELAYED = DelayedLane("delayed", CLAIM_DELAYED, NEXT_DELAYED)
DELAYED_OVERDUE = DelayedLane("delayed_overdue", CLAIM_DELAYED_OVERDUE, None, yields_to_due_now=True)
DELAYED_RETRY = DelayedLane("delayed_retry", CLAIM_DELAYED_RETRY, NEXT_DELAYED_RETRY, yields_to_due_now=True)


async def claim_messages(
    connection: Connection, lane: DelayedLane, limit: int, max_bytes: int, moment: datetime | None = None
) -> Claim[DueMessage] | None:
    """Claim due messages of one lane, in the order in which they are to leave. They are locked until the transaction
    ends, and other claims skip them. None: no message is due, or other transactions have locked all that are.
    """
    rows = await connection.fetch(lane.claim_sql, moment, limit, max_bytes)
    if not rows:
        return None
    rows.sort(key=lambda row: row["place"])
    now: datetime = rows[0]["now"]
    return Claim(
        now,
        moment or now,
        [
            DueMessage(
                row["id"],
                RawMessage(row["exchange"], row["routing_key"], row["header"], row["body"]),
                row["due_at"],
                row["message_id"],
                row["name"],
                row["refusals"],
            )
            for row in rows
        ],
        rows[0]["found"],
    )


async def look_ahead_delayed(
    connection: Connection, lane: DelayedLane, moment: datetime | None = None
) -> Upcoming | None:
    """Find the lane's next due moment, by Postgres' clock, as `look_ahead` of jobs does."""
    rows = await connection.fetch(lane.look_ahead_sql, moment) if lane.look_ahead_sql else []
    return Upcoming(rows[0]["at"], (rows[0]["at"] - rows[0]["now"]).total_seconds()) if rows else None


DELETE_PUBLISHED = "delete from delayed_messages where id = any($1::bigint[])"

REFUSE_MESSAGES = """
update delayed_messages
   set refusals = r.refusals, refused_because = r.reason, retry_at = clock_timestamp() + r.pause
  from unnest($1::bigint[], $2::int[], $3::text[], $4::interval[]) as r(id, refusals, reason, pause)
 where delayed_messages.id = r.id
"""


async def settle_messages(connection: Connection, published: Sequence[int], refused: Sequence[Refusal]) -> None:
    """After the commit: rows of published messages are gone, and refused ones wait for their pause."""
    if published:
        await connection.execute(DELETE_PUBLISHED, published)
    if refused:
        rows = [(each.id, each.refusals, each.reason, each.pause) for each in refused]
        await connection.execute(REFUSE_MESSAGES, *(list(column) for column in zip(*rows, strict=True)))
