"""`python -m examples.birthdays.migrate`: brings the schema up to date, as the application's own role. Any number may
run at once: a lock lets one work, the others find it done.
"""

import asyncio
import os
from importlib import resources

import asyncpg

from examples.birthdays.database import SCHEMA

LOCK = 0x62697274686461  # "birthda"
LEDGER = "create table if not exists applied_migrations (name text primary key, applied_at timestamptz default now())"


async def migrate(database_url: str) -> None:
    """Apply all files that are not in the ledger, in order, each together with its entry. The operator makes the schema
    itself: see provision.py.
    """
    connection = await asyncpg.connect(
        database_url, timeout=10, command_timeout=60, server_settings={"search_path": SCHEMA}
    )
    try:
        async with connection.transaction():
            await connection.execute("select pg_advisory_xact_lock($1)", LOCK)
            await connection.execute(LEDGER)
            done = {row["name"] for row in await connection.fetch("select name from applied_migrations")}
            files = resources.files(f"{__package__}.migrations").iterdir()
            for file in sorted(files, key=lambda file: file.name):
                if file.name.endswith(".sql") and file.name not in done:
                    await connection.execute(file.read_text())
                    await connection.execute("insert into applied_migrations (name) values ($1)", file.name)
    finally:
        await connection.close(timeout=5)


if __name__ == "__main__":
    asyncio.run(migrate(os.environ["DATABASE_URL"]))
