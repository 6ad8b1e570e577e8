"""Commands that are refused: by the command line itself, where it can tell, without a message to the consumer."""

import getpass
from typing import Any

import orjson
import pytest

from cli.operator import operator_name
from tests.cli.command_line import Operator, an_operator
from tests.support.application import Application
from tests.support.services import running_consumer
from tests.support.stores import Site

TYPOS = {
    ("schedule", "tea", "--rrule", "FREQ=NEVER"): "rrule:",
    ("schedule", "tea", "--cron", "30 9 * *"): "cron:",
    ("schedule", "tea", "--at", "2030-01-01T09:00:00"): "say --timezone, such as --timezone Europe/Berlin",
    ("schedule", "tea", "--at", "tomorrow"): "at:",
    ("schedule", "tea", "--at", "2030-01-01T09:00:00", "--timezone", "Europe/Berln"): "timezone: 'Europe/Berln'",
    ("schedule", "tea"): "say one of --at, --in, --rrule, --cron and --every",
    ("schedule", "tea", "--in", "1h", "--topic", "no topic"): "topic:",
    ("schedule", "tea", "--in", "1h", "--webhook", "ftp://example.com"): "webhook.url:",
    ("schedule", "", "--in", "1h"): "id:",
    ("cancel", "tea", "--revision", "-1", "--yes"): "revision:",
    ("pause", "x" * 201): "id:",
    ("trigger", "tea", "--trigger-id", ""): "trigger_id:",
}


async def test_a_typo_is_refused_before_it_is_sent(site: Site, app: Application, duebell: Operator) -> None:
    for arguments, says in TYPOS.items():
        refused = await duebell(*arguments)
        assert refused.status == 1, (arguments, refused)
        assert says in refused.err
        assert orjson.loads(refused.out)["outcome"] == "rejected"
    assert await app.count(site.names.inbox) == 0


async def test_the_words_are_those_of_the_consumer(site: Site, app: Application, duebell: Operator) -> None:
    content = {"id": "tea", "cron": "61 9 * * *", "timezone": "Mars/Olympus", "topic": "a"}
    async with running_consumer(site):
        reply = await app.request(content)
    arguments = ("--cron", "61 9 * * *", "--timezone", "Mars/Olympus", "--topic", "a")
    refused = await duebell("schedule", "tea", *arguments)
    assert orjson.loads(refused.out) == reply


async def test_the_limit_of_the_payload_is_the_one_in_the_environment(site: Site, app: Application) -> None:
    async with an_operator({**site.environment, "MAX_PAYLOAD_BYTES": "10"}) as duebell:
        refused = await duebell("schedule", "tea", "--in", "1h", "--payload", '"0123456789"')
        assert refused.status == 1
        assert "payload: has 12 bytes, the limit is 10" in refused.err


async def test_a_cancel_of_an_unknown_id_says_so_and_exits_with_1(
    site: Site, app: Application, duebell: Operator
) -> None:
    async with running_consumer(site):
        unknown = await duebell("cancel", "nope", "--yes")
        assert unknown.status == 1
        assert "nope is unknown: id: there is no such job" in unknown.err
        assert orjson.loads(unknown.out)["outcome"] == "unknown"


async def test_a_mistake_that_only_the_consumer_sees_is_answered_and_not_parked(
    site: Site, app: Application, database: Any, duebell: Operator
) -> None:
    async with running_consumer(site):
        for command in ("pause", "resume", "trigger"):
            refused = await duebell(command, "no pe")
            assert refused.status == 1
            assert "id: there is no such job; look for a part of it: duebell list --search 'no pe'" in refused.err
        assert await app.count(site.names.parked) == 0
        assert (await app.pause("nope"))["outcome"] == "rejected"
        await app.parked(1)
    told = await database.fetch("select what, operator from history where job_id = 'no pe'")
    assert [tuple(row) for row in told] == [("rejected", operator_name())] * 3
    explained = await duebell("why", "no pe")
    assert "parked" not in explained.json["to_do"]


async def test_without_a_user_the_way_out_is_named(site: Site, app: Application, duebell: Operator) -> None:
    async with running_consumer(site, require_user_id=True):
        refused = await duebell("schedule", "tea", "--in", "1h")
        assert refused.status == 1
        assert "user_id: is required here; say --own to become its owner" in refused.err
        assert (await duebell("schedule", "tea", "--in", "1h", "--own")).json["outcome"] == "accepted"


@pytest.mark.parametrize("given", ["Ada", None])
async def test_a_command_says_who_typed_it(given: str | None, site: Site, app: Application) -> None:
    environment = {**site.environment, **({"DUEBELL_OPERATOR": given} if given else {})}
    async with an_operator(environment) as duebell:
        await duebell("pause", "tea", "--wait", "0.1")
    queue = await app.channel.get_queue(site.names.inbox)
    sent = await queue.get(no_ack=True)
    assert sent is not None
    assert sent.app_id == "duebell-cli"
    assert sent.headers["duebell-operator"] == (given or getpass.getuser())
