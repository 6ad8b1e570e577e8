"""TLS to both stores, by their addresses alone: the whole journey over it, and no way around a certificate that is not
what it should be.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import asyncpg
import pytest

from stack.directory import run_directory
from stack.ports import free_port
from stack.roles import OPERATOR, role_of
from tests.documents.blocks import blocks_of
from tests.support.application import an_application
from tests.support.builders import a_request, in_seconds
from tests.support.delivery_rows import wait_for_delivery
from tests.support.eventually import PATIENCE, eventually
from tests.support.health import health_of, is_ready
from tests.support.receiver import a_receiver
from tests.support.services import ROOT, ServiceProcess, service_process
from tests.support.stores import Site
from tests.support.tls_postgres import debian_programs
from tests.support.tls_stores import TlsStores, tls_stores

pytestmark = pytest.mark.xdist_group("tls")  # one worker: its tests share what takes long to start
SERVICES = ["consumer", "producer", "delivery"]


@pytest.fixture(scope="module")
def secure() -> Iterator[TlsStores]:
    programs = debian_programs()
    if programs is None:
        pytest.skip("needs Debian's Postgres: the wheel's has no TLS (make extras installs it)")
    with run_directory("tls") as directory, tls_stores(directory, programs) as started:
        yield started


# The addresses of docs/operations/tls.md, whose hosts are not there: the tests take their parameters.
[PAGE] = [block.text for block in blocks_of("docs/operations/tls.md") if block.language == "sh"]
SHOWN = dict(line.split("=", 1) for line in PAGE.splitlines())
PARAMETERS = {name: dict(parse_qsl(urlsplit(url).query, strict_parsing=True)) for name, url in SHOWN.items()}


def addresses(secure: TlsStores, user: str, host: str = "127.0.0.1", authority: Path | None = None) -> dict[str, str]:
    """A root certificate, and no word about verifying: it is the default."""
    root = authority or secure.authority.file
    return {
        "DATABASE_URL": secure.postgres.url_of(user, host, **dict.fromkeys(PARAMETERS["DATABASE_URL"], root)),
        "AMQP_URL": secure.amqps_url_of(user, host, **dict.fromkeys(PARAMETERS["AMQP_URL"], root)),
    }


def run_step(step: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", step]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.fixture(scope="module")
def _prepared(secure: TlsStores) -> None:
    """As a deployment does, over TLS too."""
    for step in ("shared.migrate", "shared.topology"):
        outcome = run_step(step, addresses(secure, OPERATOR))
        assert outcome.returncode == 0, outcome.stderr


@pytest.mark.usefixtures("_prepared")
async def test_the_whole_journey_goes_over_tls(secure: TlsStores, tmp_path: Path) -> None:
    """Consumer with a client certificate of its own, the others with a password alone."""
    own = {service: addresses(secure, role_of(service)) for service in SERVICES}
    own["consumer"]["DATABASE_URL"] += f"&sslcert={secure.client.file}&sslkey={secure.client.key}"
    own["consumer"]["AMQP_URL"] += f"&certfile={secure.client.file}&keyfile={secure.client.key}"
    ports = {service: free_port() for service in SERVICES}
    operator = addresses(secure, OPERATOR)
    site = Site(operator["DATABASE_URL"], operator["AMQP_URL"], "")
    database = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    with ExitStack() as running:
        for service in SERVICES:
            settings = {"METRICS_PORT": str(ports[service]), "WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8"}
            running.enter_context(service_process(service, own[service], tmp_path, **settings))

        async def all_ready() -> bool:
            return all([await is_ready(port) for port in ports.values()])

        await eventually(all_ready, within=40)
        async with an_application(site) as app, a_receiver() as receiver:
            webhook = {"url": receiver.url}
            assert (await app.request(a_request(at=in_seconds(0), webhook=webhook)))["outcome"] == "accepted"
            [event] = await app.hears(1)
            await wait_for_delivery(database, "job-1", "COMPLETED")
            assert receiver.calls[0].key == event.content["idempotency_key"]
        sessions = await database.fetch(
            "select usename, ssl, client_dn from pg_stat_ssl join pg_stat_activity using (pid) where usename ~ '_'"
        )
        assert {row["usename"] for row in sessions} == {role_of(service) for service in SERVICES}
        assert all(row["ssl"] for row in sessions)
        shown = {row["usename"]: row["client_dn"] for row in sessions}
        assert shown == {
            role_of("consumer"): "/CN=duebell-client",
            role_of("producer"): None,
            role_of("delivery"): None,
        }
        listed = await asyncio.to_thread(secure.rabbitmq.ctl, "list_connections", "user", "ssl", "peer_cert_subject")
        lines = [line.split("\t") for line in listed.splitlines() if line.startswith("duebell_")]
        assert {(user, tls) for user, tls, _ in lines} == {(role_of(service), "true") for service in SERVICES}
        assert {user for user, _, subject in lines if subject == "CN=duebell-client"} == {role_of("consumer")}
    await database.close(timeout=5)


async def refused(process: ServiceProcess, port: int, says: str) -> None:
    """Says so about both stores, again and again, and is alive and not ready."""

    async def told() -> bool:
        for event in ("database_not_ready", "broker_not_ready"):
            problems = [line["problem"] for line in process.said(event)]
            assert len(problems) >= 2, process.log.read_text()
            assert all(says in problem for problem in problems), problems
        return True

    await eventually(told, within=40)
    assert (await health_of(port, "/healthz"))[0] == 200
    status, body = await health_of(port)
    assert status == 503
    assert json.loads(body) == {"broker": False, "database": False}
    assert process.is_running
    assert "Traceback" not in process.log.read_text()


@pytest.mark.usefixtures("_prepared")
@pytest.mark.parametrize("service", SERVICES)
async def test_a_certificate_of_another_authority_is_refused(secure: TlsStores, tmp_path: Path, service: str) -> None:
    port = free_port()
    wrong = addresses(secure, role_of(service), authority=secure.stranger.file)
    with service_process(service, wrong, tmp_path, METRICS_PORT=str(port)) as process:
        await refused(process, port, "certificate verify failed")


@pytest.mark.usefixtures("_prepared")
@pytest.mark.parametrize("service", SERVICES)
async def test_a_certificate_for_another_host_is_refused(secure: TlsStores, tmp_path: Path, service: str) -> None:
    port = free_port()
    wrong = addresses(secure, role_of(service), host="localhost")
    with service_process(service, wrong, tmp_path, METRICS_PORT=str(port)) as process:
        await refused(process, port, "certificate is not valid for 'localhost'")


@pytest.mark.usefixtures("_prepared")
async def test_without_a_configured_authority_those_of_the_system_are_used(secure: TlsStores, tmp_path: Path) -> None:
    """An address that only says amqps verifies all the same."""
    port = free_port()
    bare = {**addresses(secure, role_of("producer")), "AMQP_URL": secure.amqps_url_of(role_of("producer")).rstrip("?")}
    with service_process("producer", bare, tmp_path, METRICS_PORT=str(port)) as process:

        async def told() -> bool:
            return any("certificate verify failed" in line["problem"] for line in process.said("broker_not_ready"))

        await eventually(told)
        assert json.loads((await health_of(port))[1])["broker"] is False


@pytest.mark.parametrize(
    ("step", "variable"),
    [("shared.migrate", "DATABASE_URL"), ("shared.topology", "AMQP_URL"), ("cli", "DATABASE_URL")],
)
@pytest.mark.parametrize("wrong", ["authority", "host"])
def test_the_steps_of_a_deployment_refuse_bad_certificates_too(
    secure: TlsStores, step: str, variable: str, wrong: str
) -> None:
    environment = addresses(
        secure,
        OPERATOR,
        host="localhost" if wrong == "host" else "127.0.0.1",
        authority=secure.stranger.file if wrong == "authority" else None,
    )
    outcome = subprocess.run(
        [sys.executable, "-m", step, *(["list"] if step == "cli" else [])],
        cwd=ROOT,
        env={variable: environment[variable]},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert outcome.returncode == (3 if step == "cli" else 1)
    assert "certificate verify failed" in outcome.stderr
    assert "Traceback" not in outcome.stderr


async def test_a_service_never_falls_back_to_clear_text(secure: TlsStores) -> None:
    """This database accepts only TLS. A service whose address asks for clear text cannot connect."""
    url = secure.postgres.url_of(OPERATOR, sslmode="disable")
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
        await asyncpg.connect(url, timeout=PATIENCE)
