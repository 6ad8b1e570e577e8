"""One call of the webhook, and its effect: at most one greeting for each key, and for each event and day. The key is
kept in the transaction of the effect, so both are there or neither is.
"""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

from examples.birthdays.verdicts import note_old_data

if TYPE_CHECKING:
    from examples.birthdays.database import Connection


class Effect(StrEnum):
    GREETED = "greeted"
    DUPLICATE = "duplicate"  # the key is known
    GREETED_BEFORE = "greeted_before"  # another occurrence of the same event on the same day
    GONE = "gone"  # the user, or the event, was deleted


@dataclass(frozen=True, slots=True)
class Ring:
    """What a webhook call says."""

    key: str
    event_id: UUID
    type: str
    message: str
    revision: int
    due_at: datetime
    occurs_on: date


@dataclass(frozen=True, slots=True)
class Received:
    effect: Effect
    too_late: tuple[int, ...] = ()  # revisions that this greeting does not have
    lateness_seconds: float = 0.0


# A copy that arrives at the same moment waits here for the first one's transaction.
KEEP_KEY = "insert into received_keys (key) values ($1) on conflict do nothing returning key"
# The user's row first, as everywhere.
LOCK_OWNER = """
select u.id, extract(epoch from now() - $2::timestamptz)::float8 as lateness
  from users u join events e on e.user_id = u.id
 where e.id = $1 for no key update of u
"""
GREET = """
insert into greetings (user_id, event_id, type, occurs_on, message, idempotency_key, due_at)
values ($1, $2, $3, $4, $5, $6, $7) on conflict (event_id, occurs_on) do nothing returning id
"""
REMEMBER_DAY = "update events set greeted_on = greatest(greeted_on, $2) where id = $1"


async def receive(connection: "Connection", ring: Ring) -> Received:
    """Call it inside a transaction."""
    if await connection.fetchval(KEEP_KEY, ring.key) is None:
        return Received(Effect.DUPLICATE)
    owner = await connection.fetchrow(LOCK_OWNER, ring.event_id, ring.due_at)
    if owner is None:
        return Received(Effect.GONE)
    columns = (owner["id"], ring.event_id, ring.type, ring.occurs_on, ring.message, ring.key, ring.due_at)
    if await connection.fetchval(GREET, *columns) is None:
        return Received(Effect.GREETED_BEFORE)
    await connection.execute(REMEMBER_DAY, ring.event_id, ring.occurs_on)
    too_late = await note_old_data(connection, ring.event_id, ring.revision)
    return Received(Effect.GREETED, tuple(too_late), owner["lateness"])


@dataclass(frozen=True, slots=True)
class Greeting:
    type: str
    occurs_on: date
    message: str
    idempotency_key: str
    due_at: datetime
    greeted_at: datetime


READ_GREETINGS = """
select type, occurs_on, message, idempotency_key, due_at, greeted_at
  from greetings where user_id = $1 order by id desc limit 100
"""


async def read_greetings(connection: "Connection", user_id: UUID) -> list[Greeting]:
    """Return the greetings of a user, the newest first, a hundred at most."""
    return [Greeting(**row) for row in await connection.fetch(READ_GREETINGS, user_id)]
