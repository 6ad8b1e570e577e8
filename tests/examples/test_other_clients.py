"""The publishers and listeners in JavaScript and with plain aio-pika, as a newcomer would run them: real services, an
application's rights.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import aio_pika
import pytest

from stack.roles import APPLICATION
from tests.support.application import Application, an_application
from tests.support.client_program import a_program
from tests.support.eventually import PATIENCE, eventually
from tests.support.npm_project import installed_project
from tests.support.services import ROOT, running_consumer, running_producer
from tests.support.stores import Site, Stores

pytestmark = pytest.mark.xdist_group("other clients")  # one worker: its tests share what takes long to start


@pytest.fixture(scope="module")
def javascript() -> dict[str, list[str | Path]]:
    project = installed_project(ROOT / "examples" / "javascript")
    return {name: ["node", project / f"{name}.mjs"] for name in ("publisher", "listener")}


@pytest.fixture(scope="module", params=["javascript", "aio_pika"])
def commands(request: pytest.FixtureRequest) -> dict[str, list[str | Path]]:
    if request.param == "javascript":
        return dict(request.getfixturevalue("javascript"))
    directory = ROOT / "examples" / "aio_pika"
    return {name: [sys.executable, directory / f"{name}.py"] for name in ("publisher", "listener")}


@pytest.fixture
def environment(stores: Stores, site: Site) -> dict[str, str]:
    amqp_url = stores.rabbitmq.url_of(APPLICATION) if stores.rabbitmq else site.amqp_url
    return {"AMQP_URL": amqp_url, "AMQP_PREFIX": site.prefix}


@pytest.fixture
async def queue(site: Site) -> AsyncIterator[str]:
    name = f"my-app.{uuid4().hex[:8]}"
    yield name
    async with an_application(site, listen_to=None) as app:
        for made in (name, f"{name}.failed"):
            await app.channel.queue_delete(made)
        await app.channel.exchange_delete(f"{name}.failed")


async def publish(
    commands: dict[str, list[str | Path]], environment: dict[str, str], directory: Path, *arguments: str
) -> tuple[int | None, str]:
    async with a_program([*commands["publisher"], *arguments], environment, directory) as program:
        await asyncio.wait_for(program.process.wait(), PATIENCE)
    return program.process.returncode, program.output


async def test_what_the_publisher_asks_for_rings_at_the_listener_once(
    commands: dict[str, list[str | Path]], environment: dict[str, str], queue: str, site: Site, tmp_path: Path
) -> None:
    async with (
        running_consumer(site),
        running_producer(site),
        a_program([*commands["listener"], queue], environment, tmp_path) as listener,
    ):
        await listener.says(f"listening on {queue}")
        status, said = await publish(commands, environment, tmp_path, "tea", "0.5", '{"cups": 2}')
        assert status == 0, said
        assert said.startswith("accepted tea 20"), said
        await listener.says("rang tea")
        [rang] = [line for line in listener.lines if line.startswith("rang")]
        key = rang.split()[-1]
        assert json.loads(rang.removeprefix("rang tea ").removesuffix(key)) == {"cups": 2}

        # A copy, as after a crash of the producer.
        async with an_application(site, listen_to=None) as app:
            due = {"id": "tea", "idempotency_key": key, "payload": None}
            await app.events.publish(_message(due), "due.event.reminders.copy")
            await listener.says("again tea is skipped")
            assert await app.count(queue) == 0

        # The same id again, with a higher revision: it is used again.
        status, said = await publish(commands, environment, tmp_path, "tea", "0.5", '{"cups": 3}')
        assert status == 0, said
        assert said.startswith("accepted tea"), said
        await listener.says('{"cups":3}' if "node" in commands["listener"] else '{"cups": 3}')

        status, said = await publish(commands, environment, tmp_path, "x" * 201, "0.5")
        assert status == 1, said
        assert "rejected" in said


async def test_an_event_that_cannot_be_handled_ends_in_the_failed_queue(
    commands: dict[str, list[str | Path]], environment: dict[str, str], queue: str, site: Site, tmp_path: Path
) -> None:
    async with (
        running_consumer(site),
        running_producer(site),
        a_program([*commands["listener"], queue], environment, tmp_path) as listener,
        an_application(site, listen_to=None) as app,
    ):
        await listener.says(f"listening on {queue}")
        status, said = await publish(commands, environment, tmp_path, "bad", "0.1", '{"fail": true}')
        assert status == 0, said
        await _count(app, f"{queue}.failed", 1)
        assert sum(line.startswith("rang bad") for line in listener.lines) == 2, "given back once"


async def test_a_command_that_no_queue_takes_is_an_error(
    commands: dict[str, list[str | Path]], environment: dict[str, str], site: Site, tmp_path: Path
) -> None:
    async with an_application(site, listen_to=None) as app:
        await app.channel.queue_delete(site.names.inbox)
    status, said = await publish(commands, environment, tmp_path, "lost")
    assert status == 1, said
    assert "accepted" not in said


async def test_a_mistake_in_the_arguments_is_one_line_without_a_stack(
    javascript: dict[str, list[str | Path]], environment: dict[str, str], tmp_path: Path
) -> None:
    for arguments, words in ((["tea", "soon"], "soon"), (["tea", "1", "{cups"], "JSON"), ([], "usage")):
        status, said = await publish(javascript, environment, tmp_path, *arguments)
        assert (status, len(said.splitlines())) == (2, 1), said
        assert words in said
    for command in javascript.values():
        async with a_program([*command, "tea"], {}, tmp_path) as program:
            await asyncio.wait_for(program.process.wait(), PATIENCE)
        assert (program.process.returncode, len(program.lines)) == (2, 1), program.output
        assert "AMQP_URL is not set" in program.output


async def _count(app: Application, queue: str, number: int) -> None:
    async def look() -> bool:
        return await app.count(queue) == number

    await eventually(look, 30)


def _message(content: dict[str, str | None]) -> aio_pika.Message:
    return aio_pika.Message(json.dumps(content).encode())
