"""The programs in examples/delayed, as a newcomer would run them: real services, an application's rights, and delay
exchanges that an operator has opened. Each publishes with a delay of one second, receives, and says after how long.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from shared.amqp.topology import declare_delay_exchange
from stack.roles import APPLICATION
from tests.support.application import Application, an_application
from tests.support.client_program import a_program
from tests.support.eventually import PATIENCE
from tests.support.installed_packages import python_of
from tests.support.npm_project import compiled, installed_project
from tests.support.services import ROOT, running_consumer, running_producer
from tests.support.stores import Site, Stores

# One worker: the names of their queues are fixed.
pytestmark = pytest.mark.xdist_group("delayed examples")

PROGRAMS = ROOT / "examples" / "delayed"
WITH_THE_LOCK = ("pika", "aio_pika", "taskiq", "faststream")
NAMES = ("pika", "aio-pika", "taskiq", "faststream", "kombu", "celery", "amqplib", "nestjs")

RECEIVED = re.compile(r"received: pay the invoice, after (?P<seconds>[\d.]+) s")


@pytest.fixture
async def environment(stores: Stores, site: Site) -> AsyncIterator[Mapping[str, str]]:
    targets = [f"my-app.later.{name}" for name in NAMES]
    async with an_application(site, listen_to=None) as operator:
        await remove(operator, site, targets)
        for target in targets:
            await declare_delay_exchange(operator.channel, site.names, target)
        amqp_url = stores.rabbitmq.url_of(APPLICATION) if stores.rabbitmq else site.amqp_url
        async with running_consumer(site), running_producer(site):
            yield {"AMQP_URL": amqp_url, "AMQP_PREFIX": site.prefix}
        await remove(operator, site, targets)


async def remove(operator: Application, site: Site, targets: list[str]) -> None:
    for target in targets:
        await operator.channel.queue_delete(target)
        await operator.channel.exchange_delete(target)
        await operator.channel.exchange_delete(site.names.delay_exchange(target))
    await operator.channel.queue_delete("my-app.later.taskiq.dead")


async def received(command: list[str | Path], environment: Mapping[str, str], directory: Path) -> None:
    """Run the program to its end. It has received its message once, and after its delay."""
    async with a_program(command, environment, directory) as program:
        await asyncio.wait_for(program.process.wait(), PATIENCE)
    assert program.process.returncode == 0, program.output
    [after] = [float(found["seconds"]) for found in RECEIVED.finditer(program.output)]
    assert after >= 1, program.output


async def test_a_python_program_receives_its_message_after_the_delay(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    await asyncio.gather(
        *(received([sys.executable, PROGRAMS / f"with_{name}.py"], environment, tmp_path) for name in WITH_THE_LOCK)
    )


async def test_kombu_receives_its_message_and_celery_its_task_and_the_retry_of_it_after_their_delays(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    python = python_of(ROOT / "requirements-celery.lock")
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    celery: list[str | Path] = [
        python,
        "-m",
        "celery",
        "--workdir",
        PROGRAMS,
        "--app",
        "with_celery",
        "worker",
        "--pool",
        "solo",
    ]
    await received([python, PROGRAMS / "with_kombu.py"], environment, tmp_path)
    async with a_program([*celery, *quiet], {**environment, "PYTHONDONTWRITEBYTECODE": "1"}, tmp_path) as worker:
        async with a_program([python, PROGRAMS / "with_celery.py"], environment, tmp_path) as sender:
            await sender.says("sent")
        await worker.says("attempt 2")
    after = [float(found["seconds"]) for found in RECEIVED.finditer(worker.output)]
    assert len(after) == 2, worker.output
    assert after[0] >= 1, worker.output
    assert after[1] >= after[0] + 1, worker.output


async def test_a_javascript_program_receives_its_message_after_the_delay(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    project = installed_project(PROGRAMS / "node")
    programs = [project / "with_amqplib.mjs", compiled(project / "with_nestjs.ts")]
    await asyncio.gather(*(received(["node", program], environment, tmp_path) for program in programs))
