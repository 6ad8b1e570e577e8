"""The producer's SQL that counts delayed messages. Each count stops at a bound, whatever the table holds."""

from dataclasses import dataclass

from shared.postgres.pool import Connection

SAMPLE_DELAYED = """
with waiting as (
    select count(*) as messages from (select from delayed_messages order by exchange, due_at, id limit $1) as counted
), due as (
    select count(*) as messages, min(due_at) as oldest from (
        select due_at from delayed_messages where retry_at is null and due_at <= now()
         order by due_at, id limit $1) as counted
), estimate as (
    select reltuples as messages from pg_class where oid = 'delayed_by_exchange'::regclass
)
select case when waiting.messages < $1 then waiting.messages
            else greatest(waiting.messages, estimate.messages::bigint) end as waiting,
       due.messages as overdue,
       coalesce(extract(epoch from now() - due.oldest), 0) as oldest_overdue_seconds
  from waiting, due, estimate
"""


@dataclass(frozen=True, slots=True)
class DelayedSample:
    """How many delayed messages there are, and how old the oldest overdue one is."""

    waiting: int
    overdue: int
    oldest_overdue_seconds: float


async def sample_delayed(connection: Connection, up_to: int) -> DelayedSample:
    """Count the delayed messages, each kind up to a bound."""
    row = await connection.fetchrow(SAMPLE_DELAYED, up_to)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    return DelayedSample(row["waiting"], row["overdue"], max(0.0, float(row["oldest_overdue_seconds"])))


# Of messages that wait, the index alone is read.
SAMPLE_EXCHANGES = """
with refused as (
    select exchange, count(*) as messages
      from (select exchange from delayed_messages where retry_at is not null order by retry_at, id limit $1) as counted
     group by exchange
)
select e.exchange as name, coalesce(refused.messages, 0) as refused,
       (select count(*) from (select from delayed_messages d where d.exchange = e.exchange
                               order by d.exchange, d.due_at, d.id limit $1) as counted) as waiting
  from (select exchange from delay_exchanges order by exchange limit $2) as e left join refused using (exchange)
"""


@dataclass(frozen=True, slots=True)
class ExchangeSample:
    """How many messages wait for one target exchange, and how many of them the broker does not take."""

    name: str
    waiting: int
    refused: int


async def sample_exchanges(connection: Connection, up_to: int, exchanges: int) -> list[ExchangeSample]:
    """Count the delayed messages of each target exchange, up to a bound."""
    rows = await connection.fetch(SAMPLE_EXCHANGES, up_to, exchanges)
    return [ExchangeSample(row["name"], row["waiting"], row["refused"]) for row in rows]
