"""Two servers of one database: the services use the one that takes writes, and find the other when it takes over."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from shared.postgres.migrate import migrate
from stack.directory import run_directory
from stack.ports import free_port
from stack.postgres import Postgres
from tests.support.application import Application
from tests.support.eventually import PATIENCE, eventually
from tests.support.health import health_of, is_ready
from tests.support.job_rows import insert_due
from tests.support.services import service_process
from tests.support.stores import Site


@pytest.fixture
def pair() -> Iterator[tuple[Postgres, Postgres]]:
    with (
        run_directory("failover") as directory,
        Postgres(directory / "primary") as primary,
        Postgres(directory / "standby", standby_of=primary) as standby,
    ):
        yield primary, standby


async def test_a_standby_is_not_used_until_it_is_promoted(
    pair: tuple[Postgres, Postgres], site: Site, app: Application, tmp_path: Path
) -> None:
    primary, standby = pair
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
        assert producer.is_running
        assert "Traceback" not in producer.log.read_text()


async def ring(url: str, app: Application, prefix: str) -> None:
    connection = await asyncpg.connect(url, timeout=PATIENCE)
    await insert_due(connection, 1, prefix=prefix)
    await connection.close(timeout=5)

    async def rang() -> bool:
        return any(event.content["id"].startswith(prefix) for event in app.heard)

    await eventually(rang, within=40)
