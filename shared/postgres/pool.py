"""Postgres: the pool, whether the schema is current, and how a batch is stored of which Postgres refuses one row.

Every statement has a deadline, on our side and on the server's; a session that hangs inside a transaction is ended by
Postgres itself, so that its row locks cannot outlive a frozen process for long.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

import asyncpg

from shared.postgres.errors import RETRYABLE_ERRORS, ROW_ERRORS, describe
from shared.postgres.migrate import current_version, newest_version
from shared.runtime.backoff import Backoff
from shared.runtime.logs import get_log
from shared.runtime.loops import mark_turn

# Generic in the type checker's eyes only.
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Result = TypeVar("Result")

CONNECT_TIMEOUT = 10.0
# How long a caller waits for a free connection of the pool.
ACQUIRE_TIMEOUT = 10.0
STATEMENT_TIMEOUT = 30.0


@asynccontextmanager
async def open_pool(url: str, application: str, size: int, **session: str) -> AsyncIterator[Pool]:
    """Connects lazily: an unreachable database is the business of whoever acquires first."""
    pool = asyncpg.create_pool(
        url,
        min_size=0,
        max_size=size,
        timeout=CONNECT_TIMEOUT,
        command_timeout=STATEMENT_TIMEOUT,
        reset=_leave_as_it_is,
        server_settings={
            "application_name": application,
            # What we acknowledge must survive a crash, whatever this server's default is.
            "synchronous_commit": "on",
            "statement_timeout": str(int(STATEMENT_TIMEOUT * 1000)),
            "idle_in_transaction_session_timeout": str(int(2 * STATEMENT_TIMEOUT * 1000)),
            **session,
        },
    )
    async with pool:
        try:
            yield pool
        finally:
            # close() waits for connections in use; at the end of the grace time there must be an end.
            try:
                await asyncio.wait_for(pool.close(), timeout=5.0)
            except (TimeoutError, *RETRYABLE_ERRORS):
                pool.terminate()


async def _leave_as_it_is(_: Connection) -> None:
    """By default asyncpg asks the server to reset the session each time, which is a round trip in every transaction. We
    change nothing of the session; a transaction that was left open is rolled back before this is called.
    """


async def wait_for_schema(pool: Pool) -> None:
    """Returns when the database answers and its schema is current; until then one clear line per try."""
    backoff, need = Backoff(first=0.5), newest_version()
    while (have := await ask_until_answered(pool, current_version)) < need:
        problem = f"the schema is at version {have}, this release needs {need}: run python -m shared.migrate"
        await _wait_a_while(problem, backoff)


async def ask_until_answered(pool: Pool, question: Callable[[Connection], Awaitable[Answer]]) -> Answer:
    """For what a process has to know before it can begin: a database that is away for a moment is no reason to end."""
    backoff = Backoff(first=0.5)
    while True:
        try:
            async with pool.acquire(timeout=CONNECT_TIMEOUT) as connection:
                return await question(connection)
        except RETRYABLE_ERRORS as error:
            await _wait_a_while(f"cannot reach the database at DATABASE_URL: {describe(error)}", backoff)


async def _wait_a_while(problem: str, backoff: Backoff) -> None:
    pause = backoff.next_pause()
    get_log().warning("database_not_ready", problem=problem, retry_in_seconds=round(pause, 1))
    await asyncio.sleep(pause)


async def schema_is_current(pool: Pool) -> bool:
    async with pool.acquire(timeout=2.0) as connection:
        return await current_version(connection) >= newest_version()


async def store_together_or_one_by_one(
    items: Sequence[Item],
    store: Callable[[Sequence[Item]], Awaitable[list[Result]]],
    refused: Callable[[Item, str], Result],
    on_split: Callable[[], None],
) -> list[Result]:
    """One result per item, in order. One row that Postgres refuses must not take its neighbours with it: when the batch
    fails over a row, its members are tried one by one. Everything else is raised: it is no row's fault.
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
