"""What the services ask of their sessions in Postgres, whatever the server's own defaults are."""

from typing import Any

from shared.postgres.pool import STATEMENT_TIMEOUT, open_pool
from tests.support.stores import Site


async def settings_of_a_session(site: Site) -> dict[str, str]:
    async with open_pool(site.database_url_of("consumer"), "a-service", 1) as pool, pool.acquire() as connection:
        rows = await connection.fetch("select name, setting from pg_settings")
    return {row["name"]: row["setting"] for row in rows}


async def by_default(database: Any, setting: str, value: str) -> None:
    """For sessions of this test's database that do not say otherwise."""
    name = await database.fetchval("select current_database()")
    await database.execute(f"alter database {name} set {setting} = {value}")


async def test_a_commit_is_durable_whatever_the_servers_default_is(site: Site, database: Any) -> None:
    """An acknowledgement follows the commit: what it speaks of must survive a crash of the server."""
    await by_default(database, "synchronous_commit", "off")
    assert (await settings_of_a_session(site))["synchronous_commit"] == "on"


async def test_no_statement_and_no_transaction_hangs_for_ever(site: Site, database: Any) -> None:
    """A process that is frozen in the middle of a transaction holds row locks: Postgres ends its session."""
    for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
        await by_default(database, setting, "0")
    settings = await settings_of_a_session(site)
    assert int(settings["statement_timeout"]) == STATEMENT_TIMEOUT * 1000
    assert 0 < int(settings["idle_in_transaction_session_timeout"]) <= 2 * STATEMENT_TIMEOUT * 1000
