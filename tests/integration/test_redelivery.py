"""Messages that are redelivered: after crash loops, after connections that were closed in the middle of a batch, and
after a stop while they could be neither stored nor parked.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aio_pika
import pytest
from structlog.testing import capture_logs

from shared.amqp.topology import DELIVERY_LIMIT
from tests.support.application import Application, an_application
from tests.support.blocked_writes import a_write_is_blocked, block_writes
from tests.support.builders import a_request
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import wait_for_status
from tests.support.services import running_consumer, service_process
from tests.support.stores import Site, Stores, put_topology


@asynccontextmanager
async def a_crashing_consumer(site: Site, number: int) -> AsyncIterator[None]:
    """Take `number` messages, and close the connection without an acknowledgement."""
    connection = await aio_pika.connect(site.amqp_url, timeout=PATIENCE)
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=number)
    queue = await channel.get_queue(site.names.inbox)
    taken: asyncio.Queue[object] = asyncio.Queue()
    await queue.consume(taken.put)
    for _ in range(number):
        await asyncio.wait_for(taken.get(), PATIENCE)
    yield
    await connection.close()


async def test_a_crash_loop_parks_no_valid_message(
    stores: Stores, site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    """The consumers crash more often than the default delivery limit of RabbitMQ 4 allows (20), each with all messages
    unacknowledged. Then a consumer that works stores them all. Each queue has the limit that Duebell sets, and a target
    for the messages that reach it.
    """
    for number in range(50):
        await app.send(a_request(id=f"job-{number}"))
    for _ in range(25):
        async with a_crashing_consumer(site, 50):
            pass
    assert await app.count(site.names.parked) == 0
    with service_process("consumer", site, tmp_path):

        async def all_stored() -> bool:
            return bool(await database.fetchval("select count(*) from jobs") == 50)

        await eventually(all_stored)
    assert await app.count(site.names.parked) == 0
    if stores.rabbitmq is None:
        return
    listed = await asyncio.to_thread(stores.rabbitmq.ctl, "--formatter", "json", "list_queues", "name", "arguments")
    declared = {queue["name"]: queue["arguments"] for queue in json.loads(listed)}
    for name in site.names.queues:
        arguments = {argument[0]: argument[-1] for argument in declared[name]}
        assert arguments["x-delivery-limit"] == DELIVERY_LIMIT, name
        if name in {site.names.inbox, site.names.deliveries}:
            assert arguments["x-dead-letter-routing-key"] == site.names.parked
            assert arguments["x-dead-letter-strategy"] == "at-least-once"


async def test_connections_closed_in_the_middle_of_a_batch_lose_no_command(
    stores: Stores, site: Site, database: Any, tmp_path: Path
) -> None:
    """The commands are committed after their channel is lost, so they are not acknowledged: they come again, and are
    duplicates.
    """
    if stores.rabbitmq is None:
        pytest.skip("the broker was not started by the tests")
    async with an_application(site) as app:
        for number in range(50):
            await app.send(a_request(id=f"job-{number}"))
    with service_process("consumer", site, tmp_path) as consumer:
        async with block_writes(site, "before insert") as lock_holder:
            await eventually(lambda: a_write_is_blocked(lock_holder))
            await asyncio.to_thread(stores.rabbitmq.ctl, "close_all_connections", "a test")

        async def back() -> bool:
            return len(consumer.said("consuming")) >= 2

        await eventually(back)
        async with an_application(site) as app:
            assert (await app.request(a_request(id="after")))["outcome"] == "accepted"

            async def nothing_left() -> bool:
                return await app.count(site.names.inbox) == 0

            await eventually(nothing_left)
            assert await app.count(site.names.parked) == 0
        assert await database.fetchval("select count(*) from jobs") == 51
        assert await database.fetchval("select max(version) from jobs") == 1, "stored once each"
        assert "Traceback" not in consumer.log.read_text()


async def test_a_command_that_cannot_be_stored_goes_back(site: Site, app: Application, database: Any) -> None:
    """The consumer receives the command and is stopped before the database takes it: it has acknowledged nothing."""
    with capture_logs() as lines:
        async with running_consumer(site):
            await app.request(a_request(id="before"))
            await database.execute("alter table jobs rename to gone")
            await app.send(a_request(id="waiting"))
            await eventually(lambda: _said(lines, "batch_waits"))
    await eventually(lambda: _waits_in_the_inbox(site, app, 1))
    await database.execute("alter table gone rename to jobs")
    async with running_consumer(site):
        await wait_for_status(database, "waiting", "pending")


async def test_a_command_that_cannot_be_parked_goes_back(stores: Stores, site: Site, app: Application) -> None:
    """The consumer's user has no right to declare the parking queue again: until an operator does, refused commands
    wait.
    """
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker: it has no users with fewer rights")
    own = site.own["consumer"]["AMQP_URL"]
    with capture_logs() as lines:
        async with running_consumer(site, amqp_url=own):
            await app.request(a_request(id="before"))
            await app.channel.queue_delete(site.names.parked)
            await app.send({"id": "bad"})
            await eventually(lambda: _said(lines, "batch_waits"))
    await eventually(lambda: _waits_in_the_inbox(site, app, 1))
    await put_topology(site)
    async with running_consumer(site, amqp_url=own):
        [parked] = await app.parked(1)
    assert json.loads(parked.body) == {"id": "bad"}


async def _said(lines: Sequence[Mapping[str, Any]], event: str) -> bool:
    return any(line["event"] == event for line in lines)


async def _waits_in_the_inbox(site: Site, app: Application, number: int) -> bool:
    return await app.count(site.names.inbox) == number
