"""Two servers of one database: the services use the one that takes writes, and find the other when it takes over."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from delivery.intake import Stored
from shared.postgres.migrate import migrate
from shared.postgres.pool import open_pool
from stack.directory import run_directory
from stack.ports import free_port
from stack.postgres import Postgres
from tests.support.application import Application
from tests.support.delivery_parts import a_handler
from tests.support.due_events import a_due, received
from tests.support.eventually import PATIENCE, eventually
from tests.support.health import health_of, is_ready
from tests.support.job_rows import insert_due
from tests.support.services import service_process
from tests.support.stores import Site


@pytest.fixture
def directory() -> Iterator[Path]:
    with run_directory("failover") as directory:
        yield directory


@pytest.fixture
def primary(directory: Path) -> Iterator[Postgres]:
    with Postgres(directory / "primary") as primary:
        yield primary


@pytest.fixture
def standby(directory: Path, primary: Postgres) -> Iterator[Postgres]:
    with Postgres(directory / "standby", standby_of=primary) as standby:
        yield standby


async def test_a_standby_is_not_used_until_it_is_promoted(
    primary: Postgres, standby: Postgres, site: Site, app: Application, tmp_path: Path
) -> None:
    await migrate(primary.url)
    both = primary.url.replace("@", f"@127.0.0.1:{standby.port},")
    metrics = free_port()
    environment = replace(site, database_url=both).environment
    with service_process("producer", environment, tmp_path, METRICS_PORT=str(metrics)) as producer:
        await eventually(lambda: is_ready(metrics))
        await ring(primary.url, app, "before-")

        await asyncio.to_thread(primary.stop, "immediate")

        async def only_readers_left() -> bool:
            status, body = await health_of(metrics)
            return status == 503 and json.loads(body) == {"broker": True, "database": False}

        await eventually(only_readers_left, within=40)
        connection = await asyncpg.connect(standby.url, timeout=PATIENCE)
        assert await connection.fetchval("select pg_is_in_recovery()")
        await connection.close(timeout=5)
        await asyncio.to_thread(standby.promote)

        await eventually(lambda: is_ready(metrics), within=40)
        await ring(standby.url, app, "after-")

        # The old primary comes back beside the new one, and takes writes as before.
        await asyncio.to_thread(primary.start)
        old = await asyncpg.connect(primary.url, timeout=PATIENCE)
        before = await old.fetchval(NEXT_TRANSACTION)
        await asyncio.to_thread(standby.restart)
        await ring(standby.url, app, "again-")
        await asyncio.to_thread(standby.stop, "immediate")

        async def old_one_is_refused() -> bool:
            return "an old primary: it is on timeline 1" in producer.log.read_text()

        await eventually(old_one_is_refused, within=40)
        assert await old.fetchval(NEXT_TRANSACTION) == before, "nothing was written to it"
        await old.close(timeout=5)
        assert producer.is_running
        assert "Traceback" not in producer.log.read_text()


# Each transaction that writes takes one.
NEXT_TRANSACTION = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"


async def ring(url: str, app: Application, prefix: str) -> None:
    connection = await asyncpg.connect(url, timeout=PATIENCE)
    await insert_due(connection, 1, prefix=prefix)
    await connection.close(timeout=5)

    async def rang() -> bool:
        return any(event.content["id"].startswith(prefix) for event in app.heard)

    await eventually(rang, within=40)


WAITING = "select count(*) from pg_stat_activity where application_name = 'delivery' and wait_event = 'SyncRep'"


async def test_an_event_whose_delivery_the_standby_does_not_have_is_not_stored_yet(primary: Postgres) -> None:
    """A timeout cancels the wait of a commit for its standby: the row is then visible on the primary alone. The event
    comes again, is a duplicate, and must wait all the same.
    """
    await migrate(primary.url)
    operator = await asyncpg.connect(primary.url, timeout=PATIENCE)
    await operator.execute("alter system set synchronous_standby_names = 'away'")
    await operator.execute("select pg_reload_conf()")
    event = received(1, a_due("tea", "http://127.0.0.1:1/"))

    async def waits() -> bool:
        return bool(await operator.fetchval(WAITING))

    async with open_pool(primary.url_of("duebell_delivery"), "delivery", 1) as pool:
        first = asyncio.create_task(a_handler(pool).store([event]))
        await eventually(waits)
        first.cancel()
        await asyncio.wait([first])

        async def is_visible() -> bool:
            return bool(await operator.fetchval("select count(*) from deliveries"))

        await eventually(is_visible)
        again = asyncio.create_task(a_handler(pool).store([event]))

        async def waits_or_is_done() -> bool:
            return again.done() or await waits()

        await eventually(waits_or_is_done)
        assert not again.done(), "it would be acknowledged, and be lost with the primary"
        await operator.execute("alter system set synchronous_standby_names = ''")
        await operator.execute("select pg_reload_conf()")
        [stored] = await again
        assert isinstance(stored, Stored)
        assert not stored.is_new
    await operator.close(timeout=5)
