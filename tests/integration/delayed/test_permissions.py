"""RabbitMQ's write permission on a delay exchange decides who may send to its target later."""

from typing import Any

import aio_pika
import pytest
from aio_pika import ExchangeType
from aiormq.exceptions import ChannelAccessRefused

from shared.amqp.topology import declare_delay_exchange, delete_delay_exchange
from shared.postgres.delay_exchanges import open_exchanges
from stack.roles import APPLICATION
from tests.support.application import Application
from tests.support.delayed import a_delayed_sender
from tests.support.eventually import PATIENCE, eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site, Stores


async def test_a_user_who_may_not_write_to_a_delay_exchange_gets_nothing_through(
    stores: Stores, site: Site, app: Application, database: Any
) -> None:
    if not site.own or stores.rabbitmq is None:
        pytest.skip("the tests did not start the stores, which have no roles")
    mine = f"my-app.{site.prefix}orders"
    async with (
        a_delayed_sender(site) as others,
        running_consumer(site),
        running_producer(site),
        await aio_pika.connect(stores.rabbitmq.url_of(APPLICATION), timeout=PATIENCE) as connection,
    ):
        exchange = await app.channel.declare_exchange(mine, ExchangeType.FANOUT, auto_delete=True)
        queue = await app.channel.declare_queue(f"my-app.{site.prefix}later", exclusive=True)
        await queue.bind(exchange)
        await declare_delay_exchange(app.channel, site.names, mine)

        async def publish(delay_exchange: str, **headers: Any) -> None:
            async with connection.channel() as channel:
                to = await channel.get_exchange(delay_exchange, ensure=False)
                await to.publish(aio_pika.Message(b"body", headers={"x-delay": 1, **headers}, message_id="m"), "key")

        with pytest.raises(ChannelAccessRefused):
            await publish(others.delay_exchange)
        # No header names another target.
        await publish(site.names.delay_exchange(mine), exchange=others.exchange, **{"x-exchange": others.exchange})
        message = await eventually(lambda: queue.get(no_ack=True, fail=False))
        assert message
        assert (message.body, message.exchange) == (b"body", mine)
        assert await database.fetchval("select count(*) from history where job_id = 'm' and what = 'accepted'") == 1
        assert others.heard == []
    await delete_delay_exchange(app.channel, site.names, mine)


async def test_a_death_that_a_sender_has_made_up_opens_no_exchange(site: Site, app: Application, database: Any) -> None:
    """Up to version 3.13 RabbitMQ believes the header `x-death` of a message that is published."""
    async with a_delayed_sender(site) as mine, a_delayed_sender(site) as others:
        await open_exchanges(database, [mine.exchange])
        death = {"count": 0, "reason": "expired", "queue": site.names.delayed, "exchange": others.delay_exchange}
        await mine.send(headers={"x-death": [death]}, expiration="1")

        async def expired() -> bool:
            assert await app.count(site.names.expired) == 1
            return True

        await eventually(expired)
        async with running_consumer(site), running_producer(site):

            async def dealt_with() -> bool:
                assert mine.heard or others.heard or await app.count(site.names.parked) == 1
                return True

            await eventually(dealt_with)
        assert others.heard == []
