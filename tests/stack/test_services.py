"""Services as processes: migrated first, started, waited for, and clear words when one does not come up."""

import json
import os
import urllib.request
from pathlib import Path

import pytest

from stack.errors import StartError
from stack.services import Service, ServiceContext, services
from tests.stack.living_processes import ends

STAND_IN = """
import http.server, json, os, pathlib

pathlib.Path("environment.json").write_text(json.dumps(dict(os.environ)))

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()

address = (os.environ["METRICS_HOST"], int(os.environ["METRICS_PORT"]))
http.server.HTTPServer(address, Answers).serve_forever()
"""


@pytest.fixture
def context(tmp_path: Path) -> ServiceContext:
    """A project of stand-ins: a migration that does nothing, and a service that is ready at once."""
    project = tmp_path / "project"
    write(project, "shared/migrate.py", "print('migrated')")
    write(project, "shared/topology.py", "print('declared')")
    write(project, "consumer/__main__.py", STAND_IN)
    directory = tmp_path / "stack"
    return ServiceContext("postgresql://db", "amqp://mq", directory, directory / "logs", {"MOOD": "good"}, project)


def write(project: Path, file: str, text: str) -> None:
    path = project / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_service_is_migrated_started_ready_and_stopped(context: ServiceContext) -> None:
    with services(context, ["consumer"]) as running:
        consumer = running["consumer"]
        with urllib.request.urlopen(f"{consumer.url}/readyz") as answer:
            assert answer.status == 200
        pid = consumer.pid
        environment = json.loads((context.project / "environment.json").read_text())

    assert ends(pid)
    assert context.log("migrate").read_text() == "migrated\n"
    expected = {"DATABASE_URL": "postgresql://db", "AMQP_URL": "amqp://mq", "METRICS_HOST": "127.0.0.1", "MOOD": "good"}
    assert expected.items() <= environment.items()
    assert environment["METRICS_PORT"] == str(consumer.port)
    assert environment["PATH"] == os.environ["PATH"]


def test_replicas_have_names_ports_and_logs_of_their_own(context: ServiceContext) -> None:
    pair = [Service(context, "consumer", name) for name in ("consumer-a", "consumer-b")]
    for service in pair:
        service.start()
    try:
        for service in pair:
            service.wait_ready()
    finally:
        exits = [service.stop() for service in pair]
    assert exits == [-15, -15]
    assert {log.name for log in context.logs.iterdir()} == {"consumer-a.log", "consumer-b.log"}


def test_a_service_that_ends_while_starting_shows_its_last_lines(context: ServiceContext) -> None:
    write(context.project, "consumer/__main__.py", "raise SystemExit('no such queue')")

    with pytest.raises(StartError) as failure, services(context, ["consumer"]):
        pass

    assert str(failure.value).startswith("The consumer ended with exit code 1.")
    assert "| no such queue" in str(failure.value)


def test_a_service_that_is_never_ready_is_not_waited_for_forever(context: ServiceContext) -> None:
    write(context.project, "consumer/__main__.py", STAND_IN.replace("200", "503"))
    service = Service(context, "consumer")
    service.start()
    try:
        with pytest.raises(StartError, match=r"The consumer was not ready within 1 s\."):
            service.wait_ready(seconds=1)
    finally:
        service.kill()
    assert not service.alive()


def test_a_failing_migration_starts_no_service(context: ServiceContext) -> None:
    write(context.project, "shared/migrate.py", "raise SystemExit('table is gone')")

    with pytest.raises(StartError) as failure, services(context, ["consumer"]):
        pass

    assert str(failure.value).startswith("The step migrate failed with exit code 1.")
    assert "| table is gone" in str(failure.value)
    assert not context.log("consumer").exists()
