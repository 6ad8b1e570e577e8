"""Messages that come again: after crash loops, and after connections that were closed in the middle of a batch."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aio_pika
import pytest

from shared.topology import DELIVERY_LIMIT
from tests.support.application import Application, an_application
from tests.support.builders import a_request
from tests.support.eventually import PATIENCE, eventually
from tests.support.gate import held_back, somebody_waits
from tests.support.services import service_process
from tests.support.stores import Site, Stores


@asynccontextmanager
async def a_crashing_consumer(site: Site, number: int) -> AsyncIterator[None]:
    """Takes so many messages and is gone without a word about any of them."""
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


async def test_a_crash_loop_puts_no_innocent_message_aside(
    stores: Stores, site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    """More crashes than RabbitMQ 4 would forgive by default (20), each with all messages in hand; then a good consumer
    stores them all. The limit is our own, and says where what reaches it goes.
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


async def test_connections_closed_in_the_middle_of_a_batch_cost_nothing(
    stores: Stores, site: Site, database: Any, tmp_path: Path
) -> None:
    """Committed, but too late to be acknowledged on the channel it came by: it comes again, and is known."""
    if stores.rabbitmq is None:
        pytest.skip("the broker is not ours")
    async with an_application(site) as app:
        for number in range(50):
            await app.send(a_request(id=f"job-{number}"))
    with service_process("consumer", site, tmp_path) as consumer:
        async with held_back(site, "before insert") as gatekeeper:
            await eventually(lambda: somebody_waits(gatekeeper))
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
