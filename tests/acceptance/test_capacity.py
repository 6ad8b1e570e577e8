"""The figures of docs/operations/capacity.md: bytes of a row, connections and memory of a process."""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped]
import pytest

from stack.ports import free_port
from stack.services import CONSOLE, SERVICES
from tests.kubernetes.files import files, pods, read
from tests.support.application import Application
from tests.support.eventually import eventually
from tests.support.health import is_ready
from tests.support.receiver import a_receiver
from tests.support.services import ROOT, service_process
from tests.support.stores import Site

PAGE = (ROOT / "docs/operations/capacity.md").read_text()
JOBS = 1_000
PAYLOAD = {"text": "x" * 100, "n": 1}
# Rows are measured without the room that updates leave, which differs from run to run.
MEASURED = {
    "jobs": "jobs",
    "deliveries": "deliveries",
    "delivery_attempts": "delivery_attempts",
    "history": "history_%",
}
MEGABYTE = 1_000_000


def row_of(first: str) -> list[str]:
    """The cells of the row of a table that begins so."""
    [line] = [line for line in PAGE.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


async def sizes(database: Any) -> dict[str, int]:
    """The bytes of each table with its indexes."""
    found = {}
    for name, pattern in MEASURED.items():
        tables = [
            row["name"]
            for row in await database.fetch(
                "select c.oid::regclass::text as name from pg_class c where relname like $1 and relkind = 'r'", pattern
            )
        ]
        for table in tables:
            await database.execute(f"vacuum full {table}")
        found[name] = sum(
            [await database.fetchval("select pg_total_relation_size($1::regclass)", one) for one in tables]
        )
    return found


async def send(app: Application, name: str, at: datetime, **fields: Any) -> None:
    for number in range(JOBS):
        await app.send({"id": f"{name}-{number:08}", "at": at.isoformat(), "payload": PAYLOAD, **fields})


async def test_the_page_about_capacity_says_what_rows_and_processes_take(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    ports = {name: free_port() for name in (*SERVICES, CONSOLE)}
    settings = {"consumer": {"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8"}}
    settings["delivery"] = settings["consumer"]
    settings[CONSOLE] = {"CONSOLE_OPEN_ON_LOOPBACK": "true", "CONSOLE_PORT": str(free_port())}
    with ExitStack() as stack:
        processes = {}
        for name, port in ports.items():
            started = service_process(name, site, tmp_path, METRICS_PORT=str(port), **settings.get(name, {}))
            processes[name] = psutil.Process(stack.enter_context(started).process.pid)
        for port in ports.values():
            await eventually(lambda port=port: is_ready(port))  # type: ignore[misc]
        memory = {name: process.memory_info().rss / MEGABYTE for name, process in processes.items()}
        bytes_of = await _measure_rows(app, database)
        seen = {name: _connections(process, site) for name, process in processes.items()}

    assert bytes_of == {name: pytest.approx(int(row_of(name)[0]), rel=0.15) for name in bytes_of}
    said = {name: [int(cell) for cell in row_of(name)] for name in ports}
    assert {name: rabbitmq for name, (_, rabbitmq) in seen.items()} == {name: cells[1] for name, cells in said.items()}
    assert {name: postgres for name, (postgres, _) in seen.items() if not 0 < postgres <= said[name][0]} == {}
    assert memory == {name: pytest.approx(cells[2], rel=0.3) for name, cells in said.items()}
    assert {name: used for name, used in memory.items() if used > _requested()[name]} == {}


async def _measure_rows(app: Application, database: Any) -> dict[str, float]:
    empty = await sizes(database)
    await send(app, "later", datetime.now(UTC) + timedelta(days=365))
    await _until(database, "select count(*) from jobs", JOBS)
    stored = await sizes(database)
    async with a_receiver() as receiver:
        await send(app, "called", datetime.now(UTC), webhook={"url": f"{receiver.url}/of/some/usual/length"})
        await _until(database, "select count(*) from deliveries where status = 'COMPLETED'", JOBS)
        await _until(database, "select count(*) from delivery_announcements", 0)
    called = await sizes(database)
    lines = await database.fetchval("select count(*) from history")
    deliveries = sum(called[name] - stored[name] for name in ("deliveries", "delivery_attempts"))
    return {
        "a job that waits": (stored["jobs"] - empty["jobs"]) / JOBS,
        "a job with a webhook, done": (called["jobs"] - stored["jobs"]) / JOBS,
        "a delivery, with one attempt": deliveries / JOBS,
        "a line of the history": (called["history"] - empty["history"]) / lines,
    }


async def _until(database: Any, query: str, number: int) -> None:
    async def look() -> bool:
        assert (found := await database.fetchval(query)) == number, f"{found} of {number}"
        return True

    await eventually(look, within=120.0)


def _connections(process: psutil.Process, site: Site) -> tuple[int, int]:
    """Those to Postgres and those to RabbitMQ."""
    remote = [each.raddr.port for each in process.net_connections("tcp") if each.raddr]
    return remote.count(urlsplit(site.database_url).port or 0), remote.count(urlsplit(site.amqp_url).port or 0)


def _requested() -> dict[str, float]:
    """The megabytes that deploy/kubernetes asks for."""
    deployments = pods([one for file in files() for one in read(file.read_text())], "Deployment")
    asked = {
        name.removeprefix("duebell-"): pod["containers"][0]["resources"]["requests"]
        for name, pod in deployments.items()
    }
    return {name: int(of_pod["memory"].removesuffix("Mi")) * 2**20 / MEGABYTE for name, of_pod in asked.items()}
