"""The Postgres pool: how it is opened, how a service waits for the schema, and how a batch is stored when Postgres
refuses one of its rows. Every statement has a timeout, in the client and in the server. Postgres itself ends a session
that hangs inside a transaction, so row locks do not outlive a frozen process for long.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

import asyncpg

from shared.postgres.database import CONNECT_TIMEOUT, Database
from shared.postgres.errors import RETRYABLE_ERRORS, ROW_ERRORS, describe
from shared.postgres.migrate import current_version, newest_version
from shared.runtime.backoff import Backoff
from shared.runtime.logs import get_log
from shared.runtime.loops import mark_turn

# These classes are generic for the type checker only, not at run time.
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Result = TypeVar("Result")

# How long a caller waits for a free connection of the pool.
ACQUIRE_TIMEOUT = 10.0
STATEMENT_TIMEOUT = 30.0


def session_settings(**further: str) -> dict[str, str]:
    """Return the settings of a service's sessions. For poolers, deploy/roles/postgres.sql gives them to its role."""
    return {
        # An acknowledged message must survive a crash of Postgres, whatever the default of the server is.
        "synchronous_commit": "on",
        "statement_timeout": str(int(STATEMENT_TIMEOUT * 1000)),
        "idle_in_transaction_session_timeout": str(int(2 * STATEMENT_TIMEOUT * 1000)),
        **further,
    }


@asynccontextmanager
async def open_pool(url: str, application: str, size: int, **session: str) -> AsyncIterator[Pool]:
    """Open a pool that connects when a connection is first acquired: an unreachable database raises there, not here."""
    pool = asyncpg.create_pool(
        min_size=0,
        max_size=size,
        command_timeout=STATEMENT_TIMEOUT,
        reset=_keep_session,
        connect=Database(url, application, session_settings(**session)).connect_for_pool,
    )
    async with pool:
        try:
            yield pool
        finally:
            # close() waits for connections in use without a limit, but the grace time of the service is limited.
            try:
                await asyncio.wait_for(pool.close(), timeout=5.0)
            except (TimeoutError, *RETRYABLE_ERRORS):
                pool.terminate()


async def _keep_session(_: Connection) -> None:
    """Replaces the session reset that asyncpg runs on release, which costs a round trip each time. Duebell changes no
    session setting, and asyncpg rolls back an open transaction before it calls this.
    """


async def wait_for_schema(pool: Pool) -> None:
    """Wait until the database answers and its schema is current. Log one line per try."""
    backoff, need = Backoff(first=0.5), newest_version()
    while (have := await ask_until_answered(pool, current_version)) < need:
        problem = f"the schema is at version {have}, this release needs {need}: run python -m shared.migrate"
        await _log_and_wait(problem, backoff)


async def ask_until_answered(pool: Pool, question: Callable[[Connection], Awaitable[Answer]]) -> Answer:
    """Run a query that a process needs before it can start. Retry while the database is away, without a limit."""
    backoff = Backoff(first=0.5)
    while True:
        try:
            async with pool.acquire(timeout=CONNECT_TIMEOUT) as connection:
                return await question(connection)
        except RETRYABLE_ERRORS as error:
            await _log_and_wait(f"cannot reach the database at DATABASE_URL: {describe(error)}", backoff)


async def _log_and_wait(problem: str, backoff: Backoff) -> None:
    pause = backoff.next_pause()
    get_log().warning("database_not_ready", problem=problem, retry_in_seconds=round(pause, 1))
    await asyncio.sleep(pause)


async def schema_is_current(pool: Pool) -> bool:
    """Return whether every migration of this release is applied. Raises if the database does not answer."""
    async with pool.acquire(timeout=2.0) as connection:
        return await current_version(connection) >= newest_version()


async def store_together_or_one_by_one(
    items: Sequence[Item],
    store: Callable[[Sequence[Item]], Awaitable[list[Result]]],
    refused: Callable[[Item, str], Result],
    on_split: Callable[[], None],
) -> list[Result]:
    """Store a batch, and return one result per item, in order. If Postgres refuses the batch because of a row, store
    the items one by one, so that one bad row does not block the others. Errors that no row causes are raised.
    """
    try:
        return await store(items)
    except ROW_ERRORS as error:
        on_split()
        get_log().warning("batch_split", items=len(items), error=describe(error))
    results: list[Result] = []
    for item in items:
        mark_turn()
        try:
            results += await store([item])
        except ROW_ERRORS as error:
            results.append(refused(item, describe(error)))
    return results
