"""Keeps handled keys in a table of the application's own Postgres: `pip install duebell[postgres]`.

The key is inserted before the handler runs and committed after it, in one transaction. If another process handles a
copy, this one waits at the unique index: when the other process commits, the copy is skipped here, and when it rolls
back, the copy is handled here. A handler that does its work through `connection()` gets exactly one effect: its work
commits with the key, or not at all.
"""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncpg

    Pool = asyncpg.Pool[asyncpg.Record]
    PoolConnection = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]

ACQUIRE_TIMEOUT = 10.0
STATEMENT_TIMEOUT = 30.0
SWEEP_EVERY_SECONDS = 600.0
SWEEP_ROWS = 10_000

_TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]*([.][a-z_][a-z0-9_]*)?", re.ASCII)
_connection: "ContextVar[PoolConnection]" = ContextVar("duebell_seen_connection")


class PostgresSeen:
    """Keeps handled keys in Postgres. Give it a pool with room for as many handlers as run at once (`prefetch`)."""

    def __init__(self, pool: "Pool", table: str = "duebell_seen", *, keep: timedelta = timedelta(days=30)) -> None:
        if not _TABLE_NAME.fullmatch(table):
            raise ValueError(f"{table!r} is not the plain name of a table")
        self._pool = pool
        self._table = table
        self._keep = keep
        self._next_sweep = 0.0

    async def prepare(self) -> None:
        """Create the table, if it is not there. Your own migrations may do so instead."""
        async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
            # Two processes that start together would both find no table.
            await connection.execute("select pg_advisory_xact_lock(hashtext($1))", self._table)
            await connection.execute(
                f"create table if not exists {self._table} ("
                "key text primary key, seen_at timestamptz not null default now())",
                timeout=STATEMENT_TIMEOUT,
            )

    @asynccontextmanager
    async def once(self, key: str) -> AsyncIterator[bool]:
        async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            await self._sweep(connection)
            async with connection.transaction():
                inserted = await connection.fetchval(
                    f"insert into {self._table} (key) values ($1) on conflict do nothing returning true",  # noqa: S608
                    key,
                    timeout=STATEMENT_TIMEOUT,
                )
                token = _connection.set(connection)
                try:
                    yield bool(inserted)
                finally:
                    _connection.reset(token)

    @staticmethod
    def connection() -> "PoolConnection":
        """Return, inside a handler, the connection whose transaction commits together with the key."""
        return _connection.get()

    async def _sweep(self, connection: "PoolConnection") -> None:
        """Delete some of the keys that are older than `keep`, every few minutes: an event that old comes no more."""
        if time.monotonic() < self._next_sweep:
            return
        self._next_sweep = time.monotonic() + SWEEP_EVERY_SECONDS
        await connection.execute(
            f"delete from {self._table} where key in ("  # noqa: S608 - the name was checked, it holds no more than words
            f"select key from {self._table} where seen_at < now() - $1::interval limit $2)",
            self._keep,
            SWEEP_ROWS,
            timeout=STATEMENT_TIMEOUT,
        )
