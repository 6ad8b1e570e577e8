"""The SQL about users and their events."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from examples.birthdays.changes import Changes
from examples.birthdays.people import Event, StoredUser, User

if TYPE_CHECKING:
    from examples.birthdays.database import Connection

READ_USER = "select first_name, last_name, timezone, revision from users where id = $1"
# No key update: rows that refer to the user may still be added meanwhile.
LOCK_USER = f"{READ_USER} for no key update"
READ_EVENTS = "select id, type, marked, revision, starts_on, greeted_on from events where user_id = $1 order by type"


async def read_user(connection: "Connection", user_id: UUID, *, lock: bool = False) -> StoredUser | None:
    row = await connection.fetchrow(LOCK_USER if lock else READ_USER, user_id)
    if row is None:
        return None
    events = tuple(Event(**event) for event in await connection.fetch(READ_EVENTS, user_id))
    dates = {event.type: event.marked for event in events}
    user = User(row["first_name"], row["last_name"], row["timezone"], dates)
    return StoredUser(user_id, row["revision"], user, events)


INSERT_USER = "insert into users (id, first_name, last_name, timezone) values ($1, $2, $3, $4)"


async def insert_user(connection: "Connection", user_id: UUID, user: User) -> None:
    await connection.execute(INSERT_USER, user_id, user.first_name, user.last_name, user.timezone)


UPDATE_USER = """
update users set first_name = $3, last_name = $4, timezone = $5, revision = revision + 1, updated_at = now()
 where id = $1 and revision = $2
"""


async def update_user(connection: "Connection", before: StoredUser, after: User) -> None:
    """Update a user's row. LOCK_USER has locked it; the statement names the revision all the same."""
    columns = (after.first_name, after.last_name, after.timezone)
    await connection.execute(UPDATE_USER, before.id, before.revision, *columns)


INSERT_EVENT = "insert into events (id, user_id, type, marked, revision, starts_on) values ($1, $2, $3, $4, $5, $6)"
UPDATE_EVENT = "update events set marked = $2, revision = $3, starts_on = $4 where id = $1"
INSERT_RESCHEDULE = "insert into reschedules (event_id, revision) values ($1, $2)"
DELETE_EVENTS = "delete from events where id = any($1::uuid[])"


async def apply_changes(connection: "Connection", user_id: UUID, changes: Changes) -> None:
    await connection.executemany(
        INSERT_EVENT, [(e.id, user_id, e.type, e.marked, e.revision, e.starts_on) for e in changes.begun]
    )
    await connection.executemany(UPDATE_EVENT, [(e.id, e.marked, e.revision, e.starts_on) for e in changes.rescheduled])
    await connection.executemany(INSERT_RESCHEDULE, [(e.id, e.revision) for e in changes.rescheduled])
    await connection.execute(DELETE_EVENTS, _ids(changes.ended))


DELETE_USER = "delete from users where id = $1"


async def delete_user(connection: "Connection", user_id: UUID) -> None:
    """Delete a user with their events and greetings."""
    await connection.execute(DELETE_USER, user_id)


def _ids(events: Sequence[Event]) -> list[UUID]:
    return [event.id for event in events]
