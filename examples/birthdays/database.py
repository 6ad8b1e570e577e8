"""The pool of connections to the application's own schema. Every statement has a deadline."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    Connection = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
    Pool = asyncpg.Pool[asyncpg.Record]

SCHEMA = "birthdays"


@asynccontextmanager
async def a_pool(url: str) -> AsyncIterator["Pool"]:
    """Open a pool. It connects when the first statement needs it, so the application starts even if the database is
    away.
    """
    pool = await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=10,
        timeout=10,
        command_timeout=30,
        server_settings={"search_path": SCHEMA, "application_name": "birthdays"},
    )
    try:
        yield pool
    finally:
        pool.terminate()


@asynccontextmanager
async def transaction(pool: "Pool") -> AsyncIterator["Connection"]:
    async with pool.acquire(timeout=10) as connection, connection.transaction():
        yield connection


async def database_now(connection: "Connection") -> datetime:
    """Return the time by Postgres' clock, which is the same for all replicas."""
    now: datetime = await connection.fetchval("select now()")
    return now
