"""The owner of a job: RabbitMQ checks which user sent a command, and a job with an owner obeys no other user."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import aio_pika
import pytest
from aio_pika.exceptions import ChannelPreconditionFailed

from stack.roles import APPLICATION, OPERATOR
from tests.hostile.wire import properties, with_flags
from tests.support.application import Application
from tests.support.builders import a_request
from tests.support.eventually import PATIENCE
from tests.support.job_rows import read_job
from tests.support.raw_publishing import a_raw_publisher, short
from tests.support.services import running_consumer
from tests.support.stores import Site, Stores

NOT_THE_OWNER = ["user_id: the job belongs to another user"]
COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("schedule.request", a_request(revision=2)),
    ("schedule.cancel", {"id": "job-1"}),
    ("schedule.pause", {"id": "job-1"}),
    ("schedule.resume", {"id": "job-1"}),
    ("schedule.trigger", {"id": "job-1", "trigger_id": "x"}),
]
OBEYED = ["rescheduled", "paused", "resumed", "triggered", "cancelled"]
IN_TURN = [COMMANDS[n] for n in (0, 2, 3, 4, 1)]


@pytest.fixture
async def stranger(stores: Stores, site: Site, app: Application) -> AsyncIterator[Application]:
    """Connect as another user of the broker, with the rights of an application. Replies go to the queue of `app`."""
    if stores.rabbitmq is None:
        pytest.skip("the broker was not started by the tests, and has no other users")
    url = stores.rabbitmq.url_of(APPLICATION)
    async with await aio_pika.connect(url, timeout=PATIENCE) as connection, connection.channel() as channel:
        yield replace(app, channel=channel, commands=await channel.get_exchange(site.names.commands, ensure=False))


@pytest.mark.parametrize("sender", [None, APPLICATION])
async def test_a_job_obeys_its_owner_and_no_other_user(
    site: Site, app: Application, stranger: Application, database: Any, sender: str | None
) -> None:
    async with running_consumer(site):
        assert (await app.ask(a_request(), user_id=OPERATOR))["outcome"] == "accepted"
        row = await read_job(database, "job-1")
        assert row["owner"] == OPERATOR
        for key, content in COMMANDS:
            reply = await stranger.ask(content, key=key, user_id=sender)
            assert (reply["outcome"], reply["errors"], reply["next_run_at"]) == ("rejected", NOT_THE_OWNER, None), key
        assert await read_job(database, "job-1") == row
        assert await database.fetchval("select count(*) from triggers") == 0
        parked = await app.parked(len(COMMANDS))
        assert [message.headers["duebell-routing-key"] for message in parked] == [key for key, _ in COMMANDS]
        assert {message.headers.get("duebell-user-id") for message in parked} == {sender}
        outcomes = [(await app.ask(content, key=key, user_id=OPERATOR))["outcome"] for key, content in IN_TURN]
        assert outcomes == OBEYED
        assert (await read_job(database, "job-1"))["owner"] == OPERATOR


async def test_only_the_owner_and_operators_are_told_how_a_job_stands(
    site: Site, app: Application, stranger: Application
) -> None:
    async with running_consumer(site, operator_users=OPERATOR):
        await stranger.ask(a_request(), user_id=APPLICATION)
        asked = {"content": {"id": "job-1"}, "key": "schedule.query"}
        assert (await stranger.ask(**asked, user_id=APPLICATION))["outcome"] == "found"
        assert (await app.ask(**asked, user_id=OPERATOR))["outcome"] == "found"
        refused = await app.ask(**asked)
        assert (refused["outcome"], refused["errors"], refused["next_run_at"]) == ("rejected", NOT_THE_OWNER, None)
        assert "status" not in refused
        assert await app.count(site.names.parked) == 0


async def test_a_job_without_an_owner_obeys_every_user_and_a_reschedule_gives_it_none(
    site: Site, app: Application, stranger: Application, database: Any
) -> None:
    async with running_consumer(site):
        await app.ask(a_request())
        outcomes = [(await stranger.ask(content, key=key, user_id=APPLICATION))["outcome"] for key, content in IN_TURN]
        assert outcomes == OBEYED
        assert (await read_job(database, "job-1"))["owner"] is None


async def test_operators_may_command_every_job(
    site: Site, app: Application, stranger: Application, database: Any
) -> None:
    async with running_consumer(site, operator_users=f"alice, {OPERATOR}"):
        await stranger.ask(a_request(), user_id=APPLICATION)
        outcomes = [(await app.ask(content, key=key, user_id=OPERATOR))["outcome"] for key, content in IN_TURN]
        assert outcomes == OBEYED
        assert (await read_job(database, "job-1"))["owner"] == APPLICATION


async def test_a_cancel_that_comes_before_its_request_owns_the_cancelled_row(
    site: Site, app: Application, stranger: Application, database: Any
) -> None:
    async with running_consumer(site):
        assert (await app.ask({"id": "job-1"}, key="schedule.cancel", user_id=OPERATOR))["outcome"] == "unknown"
        assert (await read_job(database, "job-1"))["owner"] == OPERATOR
        assert (await stranger.ask(a_request(), user_id=APPLICATION))["errors"] == NOT_THE_OWNER
        assert (await app.ask(a_request(), user_id=OPERATOR))["outcome"] == "duplicate"
        assert (await app.ask(a_request(revision=2), user_id=OPERATOR))["outcome"] == "accepted"
        assert (await read_job(database, "job-1"))["owner"] == OPERATOR


async def test_only_the_owner_and_operators_begin_a_new_life_and_the_owner_stays(
    site: Site, app: Application, stranger: Application, database: Any
) -> None:
    cancel = {"id": "job-1", "revision": 9}
    async with running_consumer(site, operator_users=OPERATOR):
        await stranger.ask(a_request(), user_id=APPLICATION)
        await stranger.ask(cancel, key="schedule.cancel", user_id=APPLICATION)
        assert (await app.ask(a_request(revision=10)))["errors"] == NOT_THE_OWNER
        assert (await read_job(database, "job-1"))["status"] == "cancelled"
        assert (await app.ask(a_request(revision=11), user_id=OPERATOR))["outcome"] == "accepted"
        row = await read_job(database, "job-1")
        assert (row["status"], row["owner"], row["life"]) == ("pending", APPLICATION, 2)


async def test_a_new_life_of_an_id_without_an_owner_belongs_to_the_user_of_its_request(
    site: Site, app: Application, stranger: Application, database: Any
) -> None:
    """Otherwise a user could cancel ids of others in advance, and command their jobs later."""
    async with running_consumer(site):
        assert (await stranger.ask({"id": "job-1"}, key="schedule.cancel"))["outcome"] == "unknown"
        assert (await app.ask(a_request(revision=2), user_id=OPERATOR))["outcome"] == "accepted"
        assert (await read_job(database, "job-1"))["owner"] == OPERATOR
        assert (await stranger.ask(a_request(revision=3)))["errors"] == NOT_THE_OWNER


async def test_where_user_id_is_required_a_command_without_it_is_rejected_and_parked(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site, require_user_id=True):
        for key, content in COMMANDS:
            reply = await app.ask(content, key=key)
            assert (reply["id"], reply["outcome"]) == ("job-1", "rejected")
            assert reply["errors"] == ["user_id: is required here"]
        assert len(await app.parked(len(COMMANDS))) == len(COMMANDS)
        assert (await app.query("job-1"))["errors"] == ["user_id: is required here"]
        assert await app.count(site.names.parked) == 0
        assert await database.fetchval("select count(*) from jobs") == 0
        user = urlsplit(site.amqp_url).username
        assert (await app.ask(a_request(), user_id=user))["outcome"] == "accepted"


async def test_the_broker_refuses_a_user_id_that_is_not_the_senders(site: Site, stranger: Application) -> None:
    with pytest.raises(ChannelPreconditionFailed, match="user_id"):
        await stranger.send(a_request(), user_id=OPERATOR)


async def test_a_user_id_that_the_broker_did_not_check_does_not_count(
    stores: Stores, site: Site, app: Application, stranger: Application, database: Any
) -> None:
    """AMQP knows a bit for "more flags follow". RabbitMQ ignores it; a reader that follows it reads everything two
    bytes later, and finds the operator's name in the content type.
    """
    assert stores.rabbitmq is not None
    forged = properties(
        content_type=short(b"b\0\0" + short(OPERATOR.encode())),
        expiration=short(b"86400000"),  # with it, properties are handed on as they came
        user_id=short(APPLICATION.encode()),
    )
    async with running_consumer(site):
        await app.ask(a_request(), user_id=OPERATOR)
        async with a_raw_publisher(stores.rabbitmq.url_of(APPLICATION)) as publisher:
            await publisher.send(site.names.commands, b"schedule.cancel", with_flags(1, forged), b'{"id": "job-1"}')
        (parked,) = await app.parked(1)
        assert parked.headers["duebell-errors"] == NOT_THE_OWNER
        assert parked.headers["duebell-user-id"] == APPLICATION
        assert (await read_job(database, "job-1"))["status"] == "pending"
