"""Migrates the schema: `python -m shared.migrate`. Twenty processes may start it at once: an advisory lock lets one
apply a file, and the others find it applied. Each file runs in its own transaction together with its entry in the
ledger, so a migration is applied whole or not at all. Afterwards the roles of the services, if they exist, get their
rights. Services may run meanwhile: a migration that waits for a table lock gives up after LOCK_TIMEOUT and retries,
because every later statement on that table would queue behind it.
"""

import asyncio
import sys
from importlib import resources
from typing import Any

import asyncpg
from pydantic import Field
from pydantic_settings import BaseSettings

from shared.postgres.database import Database, Session
from shared.postgres.errors import describe
from shared.runtime.settings import PostgresUrl, load_settings

_LOCK = 0x64756562656C6C  # "duebell"
LOCK_TIMEOUT = "1s"
TRIES = 60
CREATE_LEDGER = """
create table if not exists duebell_migrations (
    version integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
)
"""


class _MigrateSettings(BaseSettings):
    database_url: PostgresUrl = Field(repr=False)
    database_direct_url: PostgresUrl | None = Field(default=None, repr=False)


def _migrations() -> list[tuple[int, str, str]]:
    files = [f for f in resources.files("shared.postgres.migrations").iterdir() if f.name.endswith(".sql")]
    found = [(int(f.name.split("_")[0]), f.name, f.read_text()) for f in sorted(files, key=lambda f: f.name)]
    if [version for version, _, _ in found] != list(range(1, len(found) + 1)):
        raise ValueError("two migrations have one number, or a number is missing: the later one would not be applied")
    return found


def _grants() -> str:
    return resources.files("shared.postgres").joinpath("grants.sql").read_text()


def newest_version() -> int:
    return max(version for version, _, _ in _migrations())


async def current_version(connection: Any) -> int:  # noqa: ANN401 - a connection, or the proxy that a pool gives out
    """Return the number of the newest migration that is applied; 0 in a database without any."""
    try:
        return int(await connection.fetchval("select coalesce(max(version), 0) from duebell_migrations"))
    except asyncpg.UndefinedTableError:
        return 0


async def migrate(database_url: str) -> list[str]:
    """Apply the missing migrations: afterwards the schema is current. Return the names of the files applied."""
    connection = await Database(database_url, "duebell-migrate").connect(command_timeout=600)
    try:
        await apply(connection, CREATE_LEDGER)
        applied = []
        for version, name, sql in _migrations():
            entry = f"insert into duebell_migrations (version, name) values ({version}, '{name}')"  # noqa: S608
            if await apply(connection, sql, entry, version=version):
                applied.append(name)
        await apply(connection, _grants())
        return applied
    finally:
        await connection.close(timeout=5)


async def apply(connection: Session, *statements: str, version: int | None = None) -> bool:
    """Run the statements in one transaction, unless they are of a migration that is applied. Return whether they ran.
    Retry while another session holds a lock on one of the tables.
    """
    for tries_left in reversed(range(TRIES)):
        try:
            async with connection.transaction():
                # A lock of the transaction: that of a session would stay behind in a session that a pooler gives away.
                await connection.execute(f"select pg_advisory_xact_lock({_LOCK})")
                if version is not None and await current_version(connection) >= version:
                    return False
                await connection.execute(f"set local lock_timeout = '{LOCK_TIMEOUT}'")
                for statement in statements:
                    await connection.execute(statement)
            return True
        except asyncpg.LockNotAvailableError:
            if not tries_left:
                raise
            sys.stderr.write(f"a table is in use; trying again, {tries_left} times at most\n")
            await asyncio.sleep(1.0)
    raise AssertionError("the last try returns or raises")


def main() -> None:
    settings = load_settings(_MigrateSettings)
    try:
        applied = asyncio.run(migrate(settings.database_direct_url or settings.database_url))
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        sys.exit(f"migration failed: {describe(error)}")
    sys.stderr.write("".join(f"applied {name}\n" for name in applied) or "the schema is current\n")
