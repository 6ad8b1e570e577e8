"""A publisher and a broker that is in its way: deleted exchanges, full queues, a node that does not answer."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from shared.amqp.connection import Broker
from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from tests.support.application import Application
from tests.support.proxied_broker import a_proxied_broker
from tests.support.stores import Site, Stores

TIMEOUT = 60.0
CANNOT_BE_WRITTEN = OutgoingMessage("", "nowhere", b"{}", priority=1000)


@pytest.fixture
async def publisher(site: Site) -> AsyncIterator[Publisher]:
    async with (
        Broker(site.amqp_url, name="test", names=site.names).connected() as broker,
        Publisher(broker) as publisher,
    ):
        yield publisher


@pytest.mark.own_stores
async def test_a_publish_keeps_its_timeout_with_much_to_mend_and_mends_the_next_time(
    stores: Stores, site: Site, app: Application, publisher: Publisher
) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    event = OutgoingMessage(site.names.events, "due.event.x", b"{}", may_be_unrouted=True)
    assert await publisher.publish([event], TIMEOUT) == [PublishResult.CONFIRMED]
    await app.channel.exchange_delete(site.names.events)
    assert await publisher.publish([event], TIMEOUT) == [PublishResult.CLOSED]
    stores.rabbitmq.pause()
    try:
        began = time.monotonic()
        assert await publisher.publish([event], timeout=0.5) == [PublishResult.UNKNOWN]
        assert time.monotonic() - began < TIMEOUT / 2
    finally:
        stores.rabbitmq.resume()
    assert await publisher.publish([event], TIMEOUT) == [PublishResult.UNROUTED], (
        "the exchange is back, without bindings"
    )


async def test_what_cannot_be_written_shifts_no_result(site: Site, app: Application, publisher: Publisher) -> None:
    full = f"{site.prefix}full"
    await app.binds(full, "due.event.full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    to_full = OutgoingMessage("", full, b"{}")
    assert await publisher.publish([to_full], TIMEOUT) == [PublishResult.CONFIRMED]
    with pytest.raises(ValueError, match="range"):
        await publisher.publish([to_full, to_full, CANNOT_BE_WRITTEN], TIMEOUT)
    to_others = OutgoingMessage("", site.names.parked, b"{}")
    results = await publisher.publish([to_full, to_others, to_others, to_others], TIMEOUT)
    assert results == [PublishResult.NACKED, *[PublishResult.CONFIRMED] * 3]
    await app.channel.queue_delete(full)


async def test_a_publish_that_ends_in_an_error_of_our_own_leaves_its_channel(site: Site, publisher: Publisher) -> None:
    to_parking = OutgoingMessage(site.names.parking, "x", b"{}")
    await publisher.publish([to_parking], TIMEOUT)
    first = publisher._channel
    await publisher.publish([to_parking], TIMEOUT)
    assert publisher._channel is first
    with pytest.raises(ValueError, match="range"):
        await publisher.publish([CANNOT_BE_WRITTEN], TIMEOUT)
    assert await publisher.publish([to_parking], TIMEOUT) == [PublishResult.CONFIRMED]
    assert publisher._channel is not first


@pytest.mark.own_stores
async def test_a_publish_that_is_cancelled_leaves_its_channel(stores: Stores, site: Site, publisher: Publisher) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    to_parking = OutgoingMessage(site.names.parking, "x", b"{}")
    await publisher.publish([to_parking], TIMEOUT)
    first = publisher._channel
    stores.rabbitmq.pause()
    try:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(publisher.publish([to_parking], TIMEOUT), 0.2)
    finally:
        stores.rabbitmq.resume()
    assert await publisher.publish([to_parking], TIMEOUT) == [PublishResult.CONFIRMED]
    assert publisher._channel is not first


async def test_what_no_queue_takes_is_returned_and_not_confirmed(site: Site, publisher: Publisher) -> None:
    """RabbitMQ confirms it all the same, right after the return: the return counts."""
    nowhere, parked = OutgoingMessage("", f"{site.prefix}nowhere", b"{}"), OutgoingMessage("", site.names.parked, b"{}")
    assert await publisher.publish([parked, nowhere, parked], TIMEOUT) == [
        PublishResult.CONFIRMED,
        PublishResult.RETURNED,
        PublishResult.CONFIRMED,
    ]


async def test_what_the_broker_does_not_answer_to_is_unknown(site: Site, app: Application) -> None:
    """It got both, but its confirms are lost: the caller has to be ready to publish them again."""
    to_parking = OutgoingMessage(site.names.parking, "x", b"{}")
    async with a_proxied_broker(site) as proxied, Publisher(proxied.broker) as publisher:
        assert await publisher.publish([to_parking], TIMEOUT) == [PublishResult.CONFIRMED]
        proxied.lose_answers()
        assert await publisher.publish([to_parking] * 2, timeout=0.5) == [PublishResult.UNKNOWN] * 2
        assert len(await app.parked(3)) == 3
