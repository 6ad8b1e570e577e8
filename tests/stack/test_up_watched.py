"""`python -m stack.up` with everything: each service comes with its own users, and Prometheus sees them all."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import asyncpg

from stack.processes import wait_until
from stack.prometheus import FILES, configured
from stack.roles import role_of
from stack.services import SERVICES
from tests.cli.command_line import duebell
from tests.stack.living_processes import no_process_has_text
from tests.support.eventually import PATIENCE

UP_SECONDS = 90
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
WATCHED = {*SERVICES, "rabbitmq", "rabbitmq-queues"}


def jobs_that_are_up(prometheus: str) -> set[str]:
    with urllib.request.urlopen(f"{prometheus}/api/v1/query?query=up==1", timeout=10) as answer:
        return {series["metric"]["job"] for series in json.load(answer)["data"]["result"]}


async def users_of(database_url: str) -> dict[str, str]:
    connection = await asyncpg.connect(database_url, timeout=PATIENCE)
    try:
        rows = await connection.fetch("select application_name, usename from pg_stat_activity")
        return {row["application_name"]: row["usename"] for row in rows}
    finally:
        await connection.close(timeout=5)


async def scheduled_with(secret: str, endpoints: dict[str, str]) -> Any:
    """Return the reply to a request whose webhook is to be signed with the secret of this name."""
    webhook = ("--webhook", f"{endpoints['receiver']}/hook", "--secret", secret)
    ended = await duebell("schedule", f"signed-{secret}", "--in", "1h", *webhook, AMQP_URL=endpoints["amqp_url"])
    return json.loads(ended.out)


def test_the_stack_is_watched_and_each_user_has_only_its_own_rights(tmp_path: Path) -> None:
    # Without a space: RabbitMQ 3.10 cannot find out how much room a disk has behind one, and says so with a "number"
    # that Prometheus cannot read.
    directory = tmp_path / "stack"
    command = subprocess.Popen(
        [sys.executable, "-m", "stack.up", "--directory", str(directory)],
        env={**os.environ, "WEBHOOK_SECRETS": json.dumps({"billing": SECRET})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        file = directory / "endpoints.json"
        wait_until(lambda: file.exists() or command.poll() is not None, UP_SECONDS)
        assert command.poll() is None, command.communicate()[0]
        endpoints = json.loads(file.read_text())
        assert {"database_url", "amqp_url", "prometheus", *SERVICES} <= endpoints.keys()

        for secret, outcome in {"billing": "accepted", "demo": "accepted", "shop": "rejected"}.items():
            reply = asyncio.run(scheduled_with(secret, endpoints))
            assert reply["outcome"] == outcome, reply
        assert "webhook.secret: Duebell knows no secret of this name" in reply["errors"][0]

        users = asyncio.run(users_of(endpoints["database_url"]))
        assert {users[f"duebell-{name}"] for name in SERVICES} == {role_of(name) for name in SERVICES}
        assert wait_until(lambda: jobs_that_are_up(endpoints["prometheus"]) == WATCHED, 40)
    finally:
        command.terminate()
        said, _ = command.communicate(timeout=UP_SECONDS)
    assert command.returncode == 0, said
    assert f"{endpoints['prometheus']}/alerts" in said
    assert no_process_has_text(str(directory))


def test_prometheus_watches_the_same_jobs_and_alerts_as_in_compose() -> None:
    content = configured({job: ["127.0.0.1:1"] for job in WATCHED}, every="1s")
    assert {job["job_name"] for job in content["scrape_configs"]} == WATCHED
    assert all(job["static_configs"] == [{"targets": ["127.0.0.1:1"]}] for job in content["scrape_configs"])
    assert content["rule_files"] == [str(FILES / "alerts.yml")]
    assert content["global"]["scrape_interval"] == "1s"
