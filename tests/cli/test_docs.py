"""Every command line in the documents runs as it stands, in the order in which it stands there."""

import re
import shlex
from typing import Any

import aio_pika
import orjson
import pytest

from cli.app import app as command_line
from tests.cli.command_line import an_operator, duebell
from tests.cli.test_commands import all_services, eventually_count
from tests.documents.terminal import fits
from tests.support.application import Application
from tests.support.delivery_rows import wait_for_delivery
from tests.support.receiver import a_receiver, answering
from tests.support.services import ROOT
from tests.support.stores import Site

PAGE = (ROOT / "docs/command-line.md").read_text()

DELAYED = """
insert into delayed_messages (exchange, routing_key, header, body, due_at, message_id)
select 'orders', 'invoice', '\\x0000', 'body', now() + interval '30 minutes', 'order-' || n
  from generate_series(42, 43) as n
"""


def examples(page: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("duebell ")]


def pictures(page: str) -> dict[str, str]:
    """What the page shows as printed, by the last example before it."""
    before = ((page[: found.start()], found[1]) for found in re.finditer(r"```text\n(.*?)```", page, re.DOTALL))
    return {examples(text)[-1]: picture for text, picture in before}


async def test_every_example_of_the_page_runs(site: Site, app: Application, database: Any) -> None:
    environment = {**site.environment, "COLUMNS": "500"}
    async with all_services(site), a_receiver(answering(503)) as receiver, an_operator(environment) as operator:
        hook = {"url": receiver.url, "max_retries": 0}
        await app.request({"id": "hooked", "at": "2020-01-01T00:00:00Z", "webhook": hook})
        await wait_for_delivery(database, "hooked", "FAILED")
        await database.execute(DELAYED)
        failed = await database.fetchval("select id from deliveries")
        await app.ask({"id": "bad"})
        await eventually_count(app, site.names.parked, 1)
        [parked] = (await operator("parked", "list")).json
        for job in ("unheard", "another"):
            await leave_unrouted(app, job)
        [unrouted] = (await operator("unrouted", "list", "--job", "unheard")).json
        ids = {"1234": str(failed), "3f2a": parked["id"], "81bc": unrouted["id"]}
        for line in examples(PAGE):
            if line == "duebell parked drop --all --yes":
                await eventually_count(app, site.names.parked, 1)  # what was sent again is parked again
            arguments = shlex.split(line)[1:]
            arguments = [ids.get(word, word) for word in arguments]
            ended = await operator(*arguments)
            # The failed delivery was replayed by the line before, and its replay has failed, too.
            expected = {0, 1} if "--dry-run" in arguments or "status" in arguments else {0}
            assert ended.status in expected, f"{line}: {ended.err}"
            for shown in pictures(PAGE).get(line, "").splitlines():
                assert any(fits(shown, printed) for printed in ended.out.splitlines()), (shown, ended.out)


async def leave_unrouted(app: Application, job: str) -> None:
    copies = await app.channel.get_exchange(app.names.unrouted_copies)
    headers: Any = {"duebell-routing-key": "due.event.a"}
    await copies.publish(aio_pika.Message(orjson.dumps({"id": job}), headers=headers), "due.event.a")


async def test_every_command_of_the_command_line_is_on_the_page() -> None:
    top = [
        command.name or (command.callback.__name__ if command.callback else "")
        for command in command_line.registered_commands
        if not command.hidden
    ]
    groups = {
        group.name: [
            c.name or (c.callback.__name__ if c.callback else "")
            for c in group.typer_instance.registered_commands
            if not c.hidden
        ]
        for group in command_line.registered_groups
        if group.typer_instance
    }
    wanted = top + [f"{name} {command}" for name, commands in groups.items() for command in commands]
    missing = [command for command in wanted if f"duebell {command}" not in PAGE]
    assert not missing


@pytest.mark.parametrize("arguments", [("--help",), ("deliveries", "replay", "--help"), ("--version",), ()])
async def test_help_needs_no_connection(arguments: tuple[str, ...]) -> None:
    ended = await duebell(*arguments)
    assert ended.status in ({0} if arguments else {0, 2})
    assert "duebell" in ended.out + ended.err


async def test_completion_is_there_for_the_shell() -> None:
    # Which shell it is for, is asked of the processes above it: whether there is one depends on who runs the tests.
    ended = await duebell("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert ended.status == 0, ended.err
    assert "_DUEBELL_COMPLETE" in ended.out
