"""The transactional outbox. A command to Duebell is written in the transaction that makes it true, so either both
happen or neither. The relay publishes it afterwards, as often as it takes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from examples.birthdays.commands import Command

if TYPE_CHECKING:
    from examples.birthdays.database import Connection


@dataclass(frozen=True, slots=True)
class Waiting:
    id: int
    routing_key: str
    correlation_id: str
    body: bytes


ADD = "insert into outbox (user_id, routing_key, correlation_id, body) values ($1, $2, $3, $4)"


async def add_to_outbox(connection: "Connection", user_id: UUID, commands: Sequence[Command]) -> None:
    """Add commands. Call it inside the transaction that holds the user's row: so the ids of one user's rows are in the
    order of commits.
    """
    await connection.executemany(
        ADD, [(user_id, c.routing_key, c.correlation_id, json.dumps(c.content)) for c in commands]
    )


# Only the first row of each user can be claimed, and while a relay holds it the second is still not the first: that is
# what keeps the order of each user however many relays there are. Users do not wait for one another.
CLAIM = """
select id, routing_key, correlation_id, body
  from outbox as head
 where not exists (select from outbox as earlier where earlier.user_id = head.user_id and earlier.id < head.id)
 order by id limit $1 for update skip locked
"""


async def claim_heads(connection: "Connection", limit: int) -> list[Waiting]:
    """Lock the oldest row of each user until the transaction ends. Other relays skip these rows."""
    return [
        Waiting(row["id"], row["routing_key"], row["correlation_id"], row["body"].encode())
        for row in await connection.fetch(CLAIM, limit)
    ]


REMOVE = "delete from outbox where id = any($1::bigint[])"


async def remove_from_outbox(connection: "Connection", ids: Sequence[int]) -> None:
    """Delete the rows that the broker has confirmed."""
    await connection.execute(REMOVE, list(ids))
