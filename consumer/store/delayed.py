"""The consumer's SQL for delayed messages: it stores them, replaces those with the same name, and cancels them."""

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from consumer.commands.delayed import DelayedMessage
from consumer.commands.to_messages import MAX_MEANT_MESSAGES, WaitingMessage
from shared.postgres import wake_producers
from shared.postgres.pool import Connection


class StoredDelayed(msgspec.Struct, frozen=True, gc=False):
    """A message as it was stored."""

    id: int
    due_at: datetime
    replaced: bool  # it took the place of an earlier one with its name


_GIVEN = """
with given as materialized (
    select nextval(pg_get_serial_sequence('delayed_messages', 'id')) as id, m.*
      from (select * from unnest($1::text[], $2::bytea[], $3::bytea[], $4::bytea[], $5::interval[], $6::timestamptz[],
                                 $7::text[], $8::text[], $9::text[]) with ordinality
                   as u(exchange, routing_key, header, body, delay, due_at, message_id, name, owner, n)
             order by n) as m
), inserted as (
    insert into delayed_messages (id, exchange, routing_key, header, body, due_at, message_id, name, owner)
    select id, exchange, routing_key, header, body, greatest(now(), coalesce(due_at, now() + delay)), message_id, name,
           owner
      from given"""
_STORED = """
    returning id, due_at, xmax <> 0 as replaced, due_at <= now() + make_interval(secs => $10) as due_soon
)
select given.n, inserted.* from inserted join given using (id) order by n
"""

# The numbers are drawn in the order of arrival, by which messages that are due at the same moment are published.
STORE_UNNAMED = f"{_GIVEN} order by id {_STORED}"

# Rows are locked in the order of names: two consumers cannot deadlock. A message that is being published keeps its row
# locked until it is deleted, and then the new one is inserted.
STORE_NAMED = f"""{_GIVEN} order by name, exchange
    on conflict (name, exchange) where name is not null do update set
        id = excluded.id,
        routing_key = excluded.routing_key,
        header = excluded.header,
        body = excluded.body,
        due_at = excluded.due_at,
        received_at = now(),
        message_id = excluded.message_id,
        owner = excluded.owner,
        refusals = 0,
        refused_because = null,
        retry_at = null
      where delayed_messages.owner is null
         or delayed_messages.owner = excluded.owner
         or excluded.owner = any($11::text[])
    {_STORED}"""


async def store_messages(
    connection: Connection, messages: Sequence[DelayedMessage], operators: Sequence[str] = ()
) -> list[StoredDelayed | None]:
    """Store messages, in the order of arrival. Either none of them has a name, or all have, and each another one. Call
    it inside a transaction.

    After the commit: each message has a row, and is due after its delay or at its moment, never earlier. None in the
    result: the message with this name belongs to another user, and stays as it is.
    """
    rows = [
        (m.exchange, m.routing_key, m.header, m.body, m.delay, m.due_at, m.message_id, m.name, m.user) for m in messages
    ]
    columns = (list(column) for column in zip(*rows, strict=True))
    soon = wake_producers.NOTIFY_WITHIN_SECONDS
    if messages[0].name is None:
        found = await connection.fetch(STORE_UNNAMED, *columns, soon)
    else:
        found = await connection.fetch(STORE_NAMED, *columns, soon, list(operators))
    if any(row["due_soon"] for row in found):
        await wake_producers.notify(connection)
    stored: list[StoredDelayed | None] = [None] * len(messages)
    for row in found:
        stored[row["n"] - 1] = StoredDelayed(row["id"], row["due_at"], row["replaced"])
    return stored


REGISTER_EXCHANGES = """
insert into delay_exchanges (exchange) select unnest($1::text[]) on conflict (exchange) do nothing
"""


async def register_exchanges(connection: Connection, targets: Collection[str]) -> None:
    """After the commit: the targets of these delay exchanges are in the table, and so in metrics and lists."""
    await connection.execute(REGISTER_EXCHANGES, sorted(targets))


FIND_OPEN = "select exchange from delay_exchanges where exchange = any($1::text[]) and closed_at is null"


async def find_open(connection: Connection, targets: Collection[str]) -> set[str]:
    """Return those of the targets whose delay exchanges are open."""
    return {row["exchange"] for row in await connection.fetch(FIND_OPEN, sorted(targets))}


# In the order of their numbers, as all that lock several rows: two cancels cannot deadlock.
LOCK_WAITING = """
with waiting as materialized (
    select found.id from unnest($1::text[]) as given (key) cross join lateral (
        (select id from delayed_messages where message_id = given.key limit $3)
        union all
        (select id from delayed_messages where name = given.key limit $3)
    ) as found
    union
    select id from delayed_messages where id = any($2::bigint[])
), locked as materialized (
    select d.id from delayed_messages d join waiting using (id) order by d.id for update of d
)
select d.id, d.message_id, d.name, d.exchange, d.due_at, d.owner from delayed_messages d join locked using (id)
"""


async def lock_waiting(connection: Connection, ids: Sequence[str], numbers: Sequence[int]) -> list[WaitingMessage]:
    """Lock the delayed messages with these names or `message_id`s, or numbers, until the transaction ends; of an id
    that means too many, a part of them. It waits for messages that a producer is publishing; those are gone then.
    """
    found = await connection.fetch(LOCK_WAITING, ids, numbers, MAX_MEANT_MESSAGES + 1)
    return [WaitingMessage(**row) for row in found]


DELETE_DELAYED = "delete from delayed_messages where id = any($1::bigint[])"


async def delete_messages(connection: Connection, numbers: Sequence[int]) -> None:
    """After the commit: these messages will not be published."""
    await connection.execute(DELETE_DELAYED, numbers)


# A message that the broker has refused keeps its moment: it is overdue since then.
MAKE_DUE = """
update delayed_messages
   set due_at = least(due_at, now()), refusals = 0, refused_because = null, retry_at = null
 where id = any($1::bigint[])
"""


async def make_due(connection: Connection, numbers: Sequence[int]) -> None:
    """After the commit: these messages are due, and the producers look for them."""
    await connection.execute(MAKE_DUE, numbers)
    await wake_producers.notify(connection)
