"""Delayed messages that the broker does not take: kept, tried again, visible; and no harm to others."""

import time
from decimal import Decimal
from typing import Any

from aio_pika import ExchangeType

from shared.amqp.targets import MAX_LOOK_SECONDS, TargetExchanges
from shared.amqp.topology import declare_delay_exchange
from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.delayed import a_delayed_sender, properties
from tests.support.eventually import eventually
from tests.support.proxied_broker import a_proxied_broker
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site

NOT_BOUND = "no queue is bound for the routing key"


async def refused(database: Any, number: int, reason: str) -> None:
    async def look() -> bool:
        found = await database.fetch("select refused_because from delayed_messages where refusals > 0")
        assert len(found) == number, f"{len(found)} of {number} are refused"
        assert all(reason in row["refused_because"] for row in found)
        return True

    await eventually(look)


async def test_messages_to_a_missing_exchange_wait_for_it_and_others_are_published_once(
    site: Site, app: Application, database: Any
) -> None:
    gone = f"{site.prefix}gone"
    await declare_delay_exchange(app.channel, site.names, gone)
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        await app.request(a_request(id="beside", at=in_seconds(1)))
        moment = properties(headers={"x-delay": 800})
        for number in range(200):
            await sender.send(str(number).encode(), header=moment)
            await sender.raw.send(site.names.delay_exchange(gone), b"k", moment, b"lost?")
        assert sorted(int(message.body) for message in await sender.hears(200)) == list(range(200))
        await refused(database, 200, "the exchange is not there")
        await app.hears(1)
        exchange = await app.channel.declare_exchange(gone, ExchangeType.FANOUT)
        await (await app.channel.get_queue(sender.queue)).bind(exchange)
        await database.execute("update delayed_messages set retry_at = now()")
        heard = await sender.hears(400)
    assert len(heard) == 400, "each message came once"
    await app.channel.exchange_delete(gone)
    await app.channel.exchange_delete(site.names.delay_exchange(gone))


async def test_one_message_without_a_queue_is_told_from_a_hundred_with_the_same_properties(
    site: Site, app: Application, database: Any
) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        queue = await app.channel.get_queue(sender.queue)
        await queue.unbind(sender.exchange, "#")
        await queue.bind(sender.exchange, "bound")
        header = properties(headers={"x-delay": 500}, message_id="the same")
        for number in range(100):
            await sender.send(b"body", "bound", header=header)
            if number == 50:
                await sender.send(b"body", "unbound", header=header)
        await sender.hears(100)
        await refused(database, 1, NOT_BOUND)

        async def the_refused_one_is_left() -> bool:
            # What was heard last may still be in the table: it is removed when the broker has confirmed it.
            rows = await database.fetch("select routing_key, retry_at > due_at as later from delayed_messages")
            assert [tuple(row) for row in rows] == [(b"unbound", True)]
            return True

        await eventually(the_refused_one_is_left)
        await queue.bind(sender.exchange, "unbound")
        assert (await sender.hears(101))[-1].routing_key == "unbound"
        assert len(sender.heard) == 101
    told = await database.fetch(
        "select what, details->>'reason' from history where job_id = 'the same' and what = 'refused'"
    )
    assert [tuple(row) for row in told][:1] == [("refused", NOT_BOUND)]


async def test_messages_for_a_full_queue_wait_until_it_has_room(site: Site, app: Application, database: Any) -> None:
    full = f"{site.prefix}full"
    arguments: Any = {"x-max-length": 1, "x-overflow": "reject-publish"}
    queue = await app.channel.declare_queue(full, arguments=arguments)
    delay = site.names.delay_exchange("")
    await declare_delay_exchange(app.channel, site.names, "")
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        for number in range(3):
            await sender.raw.send(delay, full.encode(), properties(headers={"x-delay": 1}), str(number).encode())
        await refused(database, 2, "a queue refused it")
        bodies = set()
        for _ in range(3):

            async def take() -> bytes | None:
                message = await queue.get(no_ack=True, fail=False)
                return message.body if message else None

            bodies.add(await eventually(take))
        assert bodies == {b"0", b"1", b"2"}
    await app.channel.queue_delete(full)
    await app.channel.exchange_delete(delay)


async def test_a_message_over_which_the_broker_closes_the_connection_waits_and_holds_up_no_other(
    site: Site, app: Application, database: Any
) -> None:
    """A stream cannot store a decimal number: RabbitMQ takes the message into the queue of delayed messages, and fails
    over it when it is due.
    """
    arguments: Any = {"x-queue-type": "stream"}
    stream = await app.channel.declare_queue(f"{site.prefix}stream", durable=True, arguments=arguments)
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        queue = await app.channel.get_queue(sender.queue)
        await queue.unbind(sender.exchange, "#")
        await queue.bind(sender.exchange, "queue")
        await stream.bind(sender.exchange, "stream")
        for number in range(20):
            await sender.send(str(number).encode(), "queue", headers={"x-delay": 800})
            if number == 10:
                await sender.send(b"x", "stream", headers={"x-delay": 800, "price": Decimal("1.5")}, message_id="price")
        await refused(database, 1, "the broker failed and closed the connection")

        async def all_others_are_published() -> bool:
            assert {int(message.body) for message in sender.heard} == set(range(20))
            assert await database.fetchval("select count(*) from delayed_messages") == 1
            return True

        await eventually(all_others_are_published)
        assert await database.fetchval("select message_id from delayed_messages") == "price"
    await stream.delete(if_unused=False, if_empty=False)


async def test_what_cannot_be_held_is_parked_with_its_reason_and_its_body(site: Site, app: Application) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site, max_delayed_bytes=10):
        await sender.send(b"x" * 11, "too.long", headers={"x-delay": 1})
        await sender.raw.send("", site.names.delayed.encode(), properties(headers={"x-delay": 1}), b"mine")
        reasons = {message.body: message.headers["duebell-reason"] for message in await app.parked(2)}
    assert reasons[b"x" * 11] == "body: has 11 bytes, the limit is 10"
    assert str(reasons[b"mine"]).startswith("exchange: the message came by a queue's name")


async def test_looking_for_many_exchanges_takes_no_longer_than_for_one(site: Site) -> None:
    """The rows of the claim are locked meanwhile."""
    async with a_proxied_broker(site) as proxied:
        targets = TargetExchanges(proxied.broker)
        proxied.lose_answers()
        began = time.monotonic()
        assert await targets.find_unusable([f"{site.prefix}{number}" for number in range(20)]) == {}
        assert time.monotonic() - began < 5 * MAX_LOOK_SECONDS
