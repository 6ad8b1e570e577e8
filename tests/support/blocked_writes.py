"""A trigger on `jobs` that makes writes wait for a lock of the test, so that a service stops between two steps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tests.support.eventually import PATIENCE
from tests.support.stores import Site

LOCK_KEY = 4242


@asynccontextmanager
async def block_writes(site: Site, when: str) -> AsyncIterator[Any]:
    """Make every transaction that writes a row of `jobs` wait until the block ends. `when` is `before update` or
    `before insert`. A test stops a service between two of its steps this way, without a seam in the service's code.
    Yields the connection that holds the lock.
    """
    lock_holder = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        await lock_holder.execute(
            f"""
            create or replace function wait_for_test_lock() returns trigger language plpgsql as $$
            begin
                perform pg_advisory_xact_lock_shared({LOCK_KEY});
                return new;
            end $$;
            create or replace trigger blocked_write {when} on jobs
            for each row execute function wait_for_test_lock();
            """
        )
        await lock_holder.execute("select pg_advisory_lock($1)", LOCK_KEY)
        yield lock_holder
        await lock_holder.execute("select pg_advisory_unlock($1)", LOCK_KEY)
    finally:
        await lock_holder.close(timeout=5)


async def a_write_is_blocked(lock_holder: Any) -> bool:
    """Tell whether a transaction waits for the lock of `block_writes()`."""
    return bool(await lock_holder.fetchval("select count(*) from pg_locks where locktype = 'advisory' and not granted"))
