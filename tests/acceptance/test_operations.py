"""What an operator meets: stores that are not there yet, settings that are wrong, health, an orderly end."""

import re
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from stack.ports import free_port
from tests.support.eventually import PATIENCE, eventually
from tests.support.health import health_of
from tests.support.services import ROOT, ServiceProcess, service_process
from tests.support.stores import Site

SERVICES = ["consumer", "producer", "delivery"]


async def said(service: ServiceProcess, event: str, times: int = 1) -> None:
    async def look() -> bool:
        assert len(service.said(event)) >= times, service.log.read_text()
        return True

    await eventually(look)


def run(service: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", service]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize("service", [*SERVICES, "shared.migrate"])
def test_a_missing_setting_is_one_line_that_names_it(service: str) -> None:
    ended = run(service, {"AMQP_URL": "amqp://127.0.0.1/"})
    assert ended.returncode == 2
    assert ended.stderr == "DATABASE_URL: is not set\n"


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DATABASE_URL", "mysql://user:hunter2@host/db"),
        ("AMQP_URL", "not an address hunter2"),
        ("METRICS_PORT", "ninety"),
        ("BATCH_SIZE", "0"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_it_and_keeps_its_secret(service: str, variable: str, value: str) -> None:
    good = {"DATABASE_URL": "postgresql://127.0.0.1/x", "AMQP_URL": "amqp://127.0.0.1/"}
    ended = run(service, {**good, variable: value})
    assert ended.returncode == 2
    assert re.fullmatch(rf"{variable}: .+\n", ended.stderr)
    assert "hunter2" not in ended.stderr


@pytest.mark.parametrize("service", SERVICES)
async def test_unreachable_stores_are_said_in_one_line_each_and_tried_again(
    site: Site, tmp_path: Path, service: str
) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    environment = {"DATABASE_URL": f"postgresql://u:hunter2@{nowhere}/db", "AMQP_URL": f"amqp://u:hunter2@{nowhere}/"}
    with service_process(service, environment, tmp_path) as process:
        await said(process, "database_not_ready", times=2)
        await said(process, "broker_not_ready", times=2)
        log = process.log.read_text()
        assert "Traceback" not in log
        assert "hunter2" not in log
        assert all(line.startswith("{") for line in log.splitlines())
        assert process.terminate() == 0, "a service that still waits stops as well as any other"


async def test_an_address_that_cannot_be_parsed_is_reported_in_one_line(site: Site, tmp_path: Path) -> None:
    environment = {**site.environment, "AMQP_URL": f"amqp://{'a' * 70}.example:1/"}
    with service_process("consumer", environment, tmp_path) as process:
        await said(process, "broker_not_ready", times=2)
        assert "Traceback" not in process.log.read_text()


@pytest.mark.parametrize("service", SERVICES)
async def test_a_wrong_password_or_database_is_said_in_one_line(site: Site, tmp_path: Path, service: str) -> None:
    wrong = {
        **site.environment,
        "DATABASE_URL": re.sub(r"/[^/]*$", "/no_such_database", site.database_url),
        "AMQP_URL": re.sub(r"//.*@", "//unknown:hunter2@", site.amqp_url),
    }
    with service_process(service, wrong, tmp_path) as process:
        await said(process, "database_not_ready")
        await said(process, "broker_not_ready")
        assert "no_such_database" in process.said("database_not_ready")[0]["problem"]
        assert "Traceback" not in process.log.read_text()
        assert "hunter2" not in process.log.read_text()


async def test_a_schema_that_is_behind_says_what_to_run(site: Site, tmp_path: Path, database: object) -> None:
    await database.execute("drop table duebell_migrations")  # type: ignore[attr-defined]
    with service_process("producer", site, tmp_path) as process:
        await said(process, "database_not_ready")
        assert "python -m shared.migrate" in process.said("database_not_ready")[0]["problem"]


@pytest.mark.parametrize("service", SERVICES)
async def test_health_and_metrics_answer_while_the_stores_are_away(tmp_path: Path, service: str) -> None:
    port, nowhere = free_port(), f"127.0.0.1:{free_port()}"
    environment = {
        "DATABASE_URL": f"postgresql://{nowhere}/db",
        "AMQP_URL": f"amqp://{nowhere}/",
        "METRICS_PORT": str(port),
    }
    with service_process(service, environment, tmp_path):
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", timeout=aiohttp.ClientTimeout(PATIENCE)) as client:

            async def alive() -> bool:
                try:
                    return (await client.get("/healthz")).status == 200
                except aiohttp.ClientConnectionError:
                    return False

            await eventually(alive)
            ready = await client.get("/readyz")
            assert ready.status == 503
            assert await ready.json() == {"broker": False, "database": False}


@pytest.mark.parametrize(
    ("service", "metric"),
    [("consumer", "jobs_queued_total"), ("producer", "jobs_due_total"), ("delivery", "deliveries_stored_total")],
)
async def test_a_running_service_is_ready_and_has_metrics(
    site: Site, tmp_path: Path, service: str, metric: str
) -> None:
    port = free_port()
    with service_process(service, site, tmp_path, METRICS_PORT=str(port)):
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", timeout=aiohttp.ClientTimeout(PATIENCE)) as client:

            async def ready() -> bool:
                try:
                    return (await client.get("/readyz")).status == 200
                except aiohttp.ClientConnectionError:
                    return False

            await eventually(ready)
            assert f"\n{metric} 0.0\n" in await (await client.get("/metrics")).text()


@pytest.mark.parametrize("service", SERVICES)
async def test_metrics_and_health_listen_on_loopback_unless_configured_otherwise(
    site: Site, tmp_path: Path, service: str
) -> None:
    """Another address of this machine stands for another machine."""
    for settings, answers in (({}, {0}), ({"METRICS_HOST": "0.0.0.0"}, {200, 503})):
        port = free_port()
        with service_process(service, site, tmp_path, METRICS_PORT=str(port), **settings):

            async def alive(port: int = port) -> bool:
                return (await health_of(port, "/healthz"))[0] == 200

            await eventually(alive)
            for path in ("/metrics", "/healthz", "/readyz"):
                assert (await health_of(port, path, host="127.0.0.2"))[0] in answers


async def test_a_port_that_is_taken_is_one_clear_line(site: Site, tmp_path: Path) -> None:
    port = free_port()
    with service_process("producer", site, tmp_path, METRICS_PORT=str(port)) as first:
        await said(first, "broker_connected")
        with service_process("producer", site, tmp_path, METRICS_PORT=str(port)) as second:

            async def ended() -> bool:
                return not second.is_running

            await eventually(ended)
            assert second.process.returncode == 1
            assert "METRICS_PORT" in second.log.read_text()
            assert "Traceback" not in second.log.read_text()
