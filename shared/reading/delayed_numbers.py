"""How many delayed messages wait. Each count stops at MAX_COUNTED, and each query walks an index."""

from dataclasses import dataclass
from datetime import datetime

from shared.postgres.pool import Connection

MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class MessageNumbers:
    """How many delayed messages there are, each kind up to MAX_COUNTED. An overdue message waits for a producer, and a
    refused one for the broker: no message is both. `overdue_since` is from when on the first of them could have been
    published, `refused_since` the first moment of the refused ones.
    """

    waiting: int = 0
    overdue: int = 0
    overdue_since: datetime | None = None
    refused: int = 0
    refused_since: datetime | None = None


MESSAGE_NUMBERS = """
with waiting as (
    select count(*) as messages from (select from delayed_messages order by exchange, due_at, id limit $1) as counted
), overdue as (
    select count(*) as messages, min(greatest(due_at, received_at)) as since from (
        select due_at, received_at from delayed_messages where retry_at is null and due_at <= now()
         order by due_at, id limit $1) as counted
), refused as (
    select count(*) as messages, min(due_at) as since from (
        select due_at from delayed_messages where retry_at is not null order by retry_at, id limit $1) as counted
), estimate as (
    select reltuples::bigint as messages from pg_class where oid = 'delayed_by_exchange'::regclass
)
select case when waiting.messages < $1 then waiting.messages
            else greatest(waiting.messages, estimate.messages) end as waiting,
       overdue.messages as overdue, overdue.since as overdue_since, refused.messages as refused,
       refused.since as refused_since
  from waiting, overdue, refused, estimate
"""


async def count_messages(connection: Connection) -> MessageNumbers:
    """Count what waits. Beyond MAX_COUNTED, `waiting` is Postgres' own estimate."""
    row = await connection.fetchrow(MESSAGE_NUMBERS, MAX_COUNTED)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    return MessageNumbers(**dict(row))
