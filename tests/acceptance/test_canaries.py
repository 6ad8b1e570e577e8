"""Secrets stay where they belong. A whole run of real processes at their most talkative, with canaries in every place
where a secret can be and everything going wrong that can: none of them is in a log line, a metric, an answer, a reply,
the reason of a parked message, the reason of a failure, or what the commands of an operator print. (The body of a
parked message is an untouched copy: it holds what was sent.)
"""

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stack.ports import free_port
from tests.support.application import Application, an_application
from tests.support.builders import a_request, in_seconds
from tests.support.canaries import CANARIES, PAYLOAD, SIGNING, SIGNING_OLD, bad_requests, private
from tests.support.due_events import a_due, publish_due
from tests.support.eventually import PATIENCE, eventually
from tests.support.health import health_of, is_ready
from tests.support.receiver import a_receiver, answering
from tests.support.services import ROOT, ServiceProcess, service_process
from tests.support.stores import Site

SERVICES = ("consumer", "producer", "delivery")
PATHS = ("/metrics", "/healthz", "/readyz")


@dataclass(slots=True)
class Heard:
    """Everything that processes and stores have written, by its source."""

    said: dict[str, str] = field(default_factory=dict)

    def add(self, who: str, what: object) -> None:
        self.said[who] = self.said.get(who, "") + (what if isinstance(what, str) else json.dumps(what, default=str))

    def assert_none_of(self, secrets: list[str]) -> None:
        leaks = {who: secret for who, text in self.said.items() for secret in secrets if secret in text}
        assert leaks == {}
        assert all(self.said.values()), "a source without any output was not recorded"


def passwords(site: Site) -> list[str]:
    urls = [url for environment in (site.environment, *site.own.values()) for url in environment.values()]
    return re.findall(r"://[\w-]+:(\w+)@", " ".join(urls))


def run_step(module: str, environment: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


async def test_a_whole_run_with_everything_going_wrong_repeats_no_secret(
    site: Site, database: Any, tmp_path: Path
) -> None:
    heard, bad = Heard(), bad_requests()
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"billing": [SIGNING, SIGNING_OLD]}))
    await database.execute("alter table jobs add constraint no_thirteen check (id <> 'thirteen')")
    await database.execute("alter table deliveries add constraint no_fourteen check (job_id <> 'fourteen')")
    ports = {service: free_port() for service in SERVICES}
    async with (
        an_application(site, "#") as app,
        a_receiver(answering(200, headers={"X-Answer": "canary-answer"})) as well,
        a_receiver(answering(503, headers={"X-Answer": "canary-answer"})) as ill,
    ):
        with ExitStack() as running:
            services = {
                service: running.enter_context(
                    service_process(service, site, tmp_path, **_settings(service, ports[service], secrets))
                )
                for service in SERVICES
            }

            async def all_ready() -> bool:
                return all([await is_ready(port) for port in ports.values()])

            await eventually(all_ready, within=40)
            await _schedule(app, well.url, ill.url)
            for body in bad:
                heard.add("replies", await app.ask(body))
            await _say(services["consumer"], "batch_split")
            await publish_due(app, b"canary-payload", a_due("fourteen", well.url, payload=PAYLOAD))
            await publish_due(app, a_due("x", "https://u:canary/x@host/", payload=PAYLOAD))
            secrets.write_text(json.dumps({"billing": "canary, which is no secret"}))
            await _all_ended(database, 6)
            signed = await _ring_until_the_file_is_read(app, services["delivery"], well.url)
            await database.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'duebell-%'"
                " and datname = current_database() and pid <> pg_backend_pid()"
            )
            await _all_ended(database, 6 + signed)
            await _listen_to_messages(heard, app, parked=len(bad) + 1 + 3)
            for service, port in ports.items():
                for path in PATHS:
                    heard.add(f"{path} of {service}", (await health_of(port, path))[1])
            for arguments in (
                ("deliveries", "replay", "--reason", "*", "--dry-run"),
                ("deliveries", "replay", "--reason", "*", "--yes"),
                ("deliveries", "list"),
                ("parked", "list"),
                ("list",),
                ("status",),
            ):
                result = await asyncio.to_thread(run_step, "cli", site.environment, *arguments)
                heard.add(" ".join(arguments), result.stdout + result.stderr)
    for service, process in services.items():
        heard.add(service, process.log.read_text())
    await _listen_to_rows(heard, database)
    assert "http_503" in heard.said["outcomes"]
    heard.assert_none_of([*CANARIES, *passwords(site)])


async def _listen_to_messages(heard: Heard, app: Application, parked: int) -> None:
    for message in await app.parked(parked):
        heard.add("reasons", {name: value for name, value in message.headers.items() if name.startswith("duebell-")})
    for event in app.heard:
        if event.routing_key.startswith("delivery."):
            heard.add("outcomes", event.content)


async def _listen_to_rows(heard: Heard, database: Any) -> None:
    for table, column in (("deliveries", "failure_reason"), ("delivery_attempts", "error")):
        rows = await database.fetch(f"select {column} from {table}")
        heard.add(f"{column} of {table}", [row[column] for row in rows])


def _settings(service: str, port: int, secrets: Path) -> dict[str, str]:
    """The consumer takes an address that delivery then forbids: the two are not told the same networks."""
    return {
        "LOG_LEVEL": "debug",
        "PYTHONASYNCIODEBUG": "1",
        "METRICS_PORT": str(port),
        "WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8,10.0.0.0/8" if service == "consumer" else "127.0.0.0/8",
        "WEBHOOK_SECRETS_FILE": str(secrets),
        "RETRY_BASE_SECONDS": "0.05",
    }


async def _schedule(app: Application, well: str, ill: str) -> None:
    """Six that come to an end, each with its own trouble; one that waits for its secret, one that Postgres refuses."""
    nowhere = f"http://127.0.0.1:{free_port()}"
    for job_id, url, webhook in (
        ("good", well, {"secret": "billing"}),
        ("failing", ill, {"max_retries": 2, "secret": "billing"}),
        ("inside", "http://10.0.0.1", {}),
        ("refused", nowhere, {"max_retries": 1}),
        ("no-tls", well.replace("http:", "https:"), {"max_retries": 1}),
        ("unsigned", well, {"secret": "unknown-secret"}),
        ("late", well, {}),
        ("thirteen", well, {}),
    ):
        at = in_seconds(-120 if job_id == "late" else 0)
        await app.ask(a_request(id=job_id, at=at, **private(url, **webhook)))
    await app.ask(a_request(id="unbound", at=in_seconds(0), payload=PAYLOAD))
    await app.cancel("unknown-job")


async def _ring_until_the_file_is_read(app: Application, delivery: ServiceProcess, url: str) -> int:
    """Delivery looks at its secrets file when it signs, at most once a second: one delivery more may not be enough for
    it to notice a change. Returns how many it took."""
    number = 0

    async def look() -> bool:
        nonlocal number
        number += 1
        await app.ask(a_request(id=f"signed-{number}", at=in_seconds(0), **private(url, secret="billing")))
        await asyncio.sleep(0.2)
        return bool(delivery.said("secrets_file_unreadable"))

    await eventually(look)
    return number


async def _all_ended(database: Any, number: int) -> None:
    async def look() -> bool:
        ended = await database.fetch("select job_id, status from deliveries where finished_at is not null")
        assert len(ended) == number, ended
        return True

    await eventually(look, within=40)


async def _say(service: ServiceProcess, event: str) -> None:
    async def look() -> bool:
        assert service.said(event), service.log.read_text()[-2000:]
        return True

    await eventually(look)


@pytest.mark.parametrize("wrong", ["password", "server", "address"])
async def test_stores_that_cannot_be_used_are_named_without_their_passwords(
    site: Site, tmp_path: Path, wrong: str
) -> None:
    environment = {
        "password": {
            "DATABASE_URL": re.sub(r":\w+@", ":canary-password@", site.database_url),
            "AMQP_URL": re.sub(r":\w+@", ":canary-password@", site.amqp_url),
        },
        "server": {
            "DATABASE_URL": f"postgresql://u:canary-password@127.0.0.1:{free_port()}/d?sslmode=require",
            "AMQP_URL": f"amqps://u:canary-password@127.0.0.1:{free_port()}/",
        },
        "address": {"DATABASE_URL": "postgresql://u:canary/x@h/d", "AMQP_URL": "amqp://u:canary@x@h/"},
    }[wrong]
    heard = Heard()
    steps: dict[str, tuple[str, ...]] = {"shared.migrate": (), "shared.topology": (), "cli": ("status",)}
    with ExitStack() as running:
        services = [running.enter_context(service_process(name, environment, tmp_path)) for name in SERVICES]
        for step, arguments in steps.items():
            result = await asyncio.to_thread(run_step, step, environment, *arguments)
            assert result.returncode in {1, 2, 3}
            assert "Traceback" not in result.stderr
            heard.add(step, result.stdout + result.stderr)
        for process in services:
            await eventually(lambda process=process: _gave_up_twice(process))  # type: ignore[misc]
    for name, process in zip(SERVICES, services, strict=True):
        heard.add(name, process.log.read_text())
    heard.assert_none_of(CANARIES)


async def _gave_up_twice(process: ServiceProcess) -> bool:
    stores = ("broker_not_ready", "database_not_ready")
    return not process.is_running or all(len(process.said(event)) > 1 for event in stores)


DIES = """
import sys
from consumer.settings import ConsumerSettings
from shared.runtime.loops import Stop
from shared.runtime.service import run_service
from shared.runtime.logs import configure_logs
from shared.runtime.settings import load_settings

async def work(stop: Stop) -> None:
    settings = load_settings(ConsumerSettings)
    password = settings.database_url.split(":")[2]
    raise RuntimeError("of something unforeseen")

configure_logs("consumer", "debug")
sys.exit(run_service(work, 1.0))
"""


@pytest.mark.parametrize("on_a_terminal", [True, False])
def test_the_error_that_ends_a_process_shows_no_local_variables(on_a_terminal: bool) -> None:
    environment = {"DATABASE_URL": "postgresql://u:canary@h/d", "AMQP_URL": "amqp://u:canary@h/", "COLUMNS": "200"}
    main, terminal = pty.openpty()
    outlet = terminal if on_a_terminal else subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", DIES], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=outlet, stderr=outlet
    )
    os.close(terminal)
    seen = _read_all(main) if on_a_terminal else b"".join(process.communicate(timeout=PATIENCE)).decode()
    os.close(main)
    assert process.wait(PATIENCE) == 1
    assert "died" in seen
    assert "Traceback" in seen
    assert "canary" not in seen


def _read_all(terminal: int) -> str:
    seen = b""
    try:
        while chunk := os.read(terminal, 65536):
            seen += chunk
    except OSError:
        pass  # the other end is closed
    return seen.decode()
