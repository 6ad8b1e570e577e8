"""Lists delay exchanges, with how many messages wait behind each. Each count stops at a bound, whatever waits."""

from dataclasses import dataclass
from datetime import datetime

from shared.contract.delayed import exchange_label
from shared.postgres.pool import Connection

MAX_COUNTED_OF_EXCHANGE = 10_000
MAX_LISTED_EXCHANGES = 1_000

LIST_EXCHANGES = """
with refused as (
    select exchange, count(*) as messages
      from (select exchange from delayed_messages where retry_at is not null order by retry_at, id limit $1) as counted
     group by exchange
)
select e.exchange, e.opened_at, e.closed_at, coalesce(refused.messages, 0) as refused,
       (select count(*) from (select from delayed_messages d where d.exchange = e.exchange
                               order by d.exchange, d.due_at, d.id limit $1) as counted) as waiting,
       (select d.due_at from delayed_messages d where d.exchange = e.exchange
         order by d.exchange, d.due_at, d.id limit 1) as next_due_at
  from (select * from delay_exchanges order by closed_at is not null, exchange limit $2) as e
  left join refused using (exchange)
 order by e.closed_at is not null, e.exchange
"""


@dataclass(frozen=True, slots=True)
class ListedExchange:
    """The target of a delay exchange, and the messages that wait for it; both counts stop at MAX_COUNTED_OF_EXCHANGE.
    A closed exchange may have messages that came before: they are published all the same.
    """

    exchange: str  # as people read it: `(default)` is the default exchange
    opened_at: datetime
    closed_at: datetime | None
    waiting: int
    refused: int
    next_due_at: datetime | None


async def list_exchanges(connection: Connection, limit: int = MAX_LISTED_EXCHANGES) -> list[ListedExchange]:
    """Return the exchanges, the open ones first."""
    rows = await connection.fetch(LIST_EXCHANGES, MAX_COUNTED_OF_EXCHANGE, limit)
    return [ListedExchange(**{**dict(row), "exchange": exchange_label(row["exchange"])}) for row in rows]
