"""A gate in the database at which a process stands still between two of its steps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tests.support.eventually import PATIENCE
from tests.support.stores import Site

GATE = 4242


@asynccontextmanager
async def held_back(site: Site, when: str) -> AsyncIterator[Any]:
    """Whoever writes a row of jobs (`before update`, `before insert`) waits at a gate until the block ends: a place to
    stop a process between two of its steps, without a seam in its code.
    """
    gatekeeper = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        await gatekeeper.execute(
            f"""
            create or replace function wait_at_gate() returns trigger language plpgsql as $$
            begin
                perform pg_advisory_xact_lock_shared({GATE});
                return new;
            end $$;
            create or replace trigger gate {when} on jobs for each row execute function wait_at_gate();
            """
        )
        await gatekeeper.execute("select pg_advisory_lock($1)", GATE)
        yield gatekeeper
        await gatekeeper.execute("select pg_advisory_unlock($1)", GATE)
    finally:
        await gatekeeper.close(timeout=5)


async def somebody_waits(gatekeeper: Any) -> bool:
    return bool(await gatekeeper.fetchval("select count(*) from pg_locks where locktype = 'advisory' and not granted"))
