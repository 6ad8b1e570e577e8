"""What can be done to a user, each in one transaction: the rows and the commands to Duebell are there together, or
neither is. No request waits for Duebell.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from examples.birthdays.changes import Changes, Circumstances, changes_between, changes_of_a_new_user
from examples.birthdays.commands import Terms, cancel, schedule
from examples.birthdays.database import database_now, transaction
from examples.birthdays.outbox import add_to_outbox
from examples.birthdays.people import StoredUser, User
from examples.birthdays.users import apply_changes, delete_user, insert_user, read_user, update_user

if TYPE_CHECKING:
    from examples.birthdays.database import Connection, Pool

    Clock = Callable[[Connection], Awaitable[datetime]]
Revise = Callable[[User, datetime], User]


class Profiles:
    def __init__(self, pool: "Pool", terms: Terms, clock: "Clock" = database_now) -> None:
        self._pool = pool
        self._terms = terms
        self._clock = clock

    async def create(self, make: Callable[[datetime], User]) -> tuple[StoredUser, datetime]:
        """Create a user. `make` gets the time, and may refuse."""
        user_id = uuid4()
        async with transaction(self._pool) as connection:
            now = await self._clock(connection)
            user = make(now)
            await insert_user(connection, user_id, user)
            changes = changes_of_a_new_user(user, Circumstances(self._terms.greeting_time, now))
            await self._put(connection, user_id, user, changes)
        return StoredUser(user_id, 1, user, changes.begun), now

    async def read(self, user_id: UUID) -> tuple[StoredUser, datetime] | None:
        async with transaction(self._pool) as connection:
            stored = await read_user(connection, user_id)
            return None if stored is None else (stored, await self._clock(connection))

    async def update(self, user_id: UUID, revise: Revise) -> tuple[StoredUser, datetime] | None:
        """Change a user. Return None if there is no such user. A change that changes nothing sends no command."""
        async with transaction(self._pool) as connection:
            before = await read_user(connection, user_id, lock=True)
            if before is None:
                return None
            now = await self._clock(connection)
            after = revise(before.user, now)
            if after == before.user:
                return before, now
            changes = changes_between(before, after, Circumstances(self._terms.greeting_time, now))
            await update_user(connection, before, after)
            await self._put(connection, user_id, after, changes)
            stored = await read_user(connection, user_id)
            return None if stored is None else (stored, now)

    async def delete(self, user_id: UUID) -> bool:
        """Cancel the user's schedules, then remove the user. Return whether there was such a user."""
        async with transaction(self._pool) as connection:
            stored = await read_user(connection, user_id, lock=True)
            if stored is None:
                return False
            await add_to_outbox(connection, user_id, [cancel(event) for event in stored.events])
            await delete_user(connection, user_id)
            return True

    async def _put(self, connection: "Connection", user_id: UUID, user: User, changes: Changes) -> None:
        await apply_changes(connection, user_id, changes)
        wanted = [schedule(user_id, user, event, self._terms) for event in (*changes.begun, *changes.rescheduled)]
        await add_to_outbox(connection, user_id, [*wanted, *map(cancel, changes.ended)])
