"""An inbox and more than it has room for."""

import asyncio
import time

from yarl import URL

from shared.amqp.connection import CLOSE_TIMEOUT, Broker
from shared.amqp.consuming import MAX_HELD_BYTES, Inbox
from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.runtime.loops import Stop
from tests.support.eventually import eventually
from tests.support.stores import Site

BODY = bytes(16 * 1024 * 1024)
MAX_HEADER_BYTES = 1000  # of what this test publishes
MESSAGES = 8


async def test_large_messages_wait_at_the_broker_and_all_arrive(site: Site) -> None:
    async with (
        Broker(site.amqp_url, name="in", names=site.names).connected() as inbound,
        Broker(site.amqp_url, name="out", names=site.names).connected() as outbound,
        Publisher(outbound) as publisher,
    ):
        for _ in range(MESSAGES):
            assert await publisher.publish([OutgoingMessage(site.names.parking, "x", BODY)], 20.0) == [
                PublishResult.CONFIRMED
            ]
        await close_in_the_middle(inbound, site)
        async with (
            inbound.open_channel(prefetch=MESSAGES) as channel,
            Inbox.consuming(channel, site.names.parked) as inbox,
        ):
            await eventually(lambda: is_full(inbox))
            sizes: list[int] = []
            while len(sizes) < MESSAGES:
                assert held(inbox) <= MAX_HELD_BYTES + len(BODY) + MAX_HEADER_BYTES
                batch = await inbox.next_batch(1, 1.0, Stop())
                sizes += [len(message.body) for message in batch]
                await inbox.acknowledge(batch)
            assert sizes == [len(BODY)] * MESSAGES


async def test_a_connection_on_which_only_deliveries_come_is_not_taken_for_dead(site: Site) -> None:
    """RabbitMQ sends no heartbeats while it sends anything else, and aiormq, which sees no delivery, would give the
    connection up after three of them: six seconds, here.
    """
    impatient = str(URL(site.amqp_url).update_query(heartbeat=1))
    async with (
        Broker(impatient, name="in", names=site.names).connected() as inbound,
        Broker(site.amqp_url, name="out", names=site.names).connected() as outbound,
        Publisher(outbound) as publisher,
        inbound.open_channel(prefetch=MESSAGES) as channel,
        Inbox.consuming(channel, site.names.parked) as inbox,
    ):
        ends_at = time.monotonic() + 8
        while time.monotonic() < ends_at:
            assert await publisher.publish([OutgoingMessage(site.names.parking, "x", b"{}")], 20.0) == [
                PublishResult.CONFIRMED
            ]
            batch = await inbox.next_batch(1, 1.0, Stop())
            assert [message.body for message in batch] == [b"{}"]
            await inbox.acknowledge(batch)
            await asyncio.sleep(0.1)


async def close_in_the_middle(broker: Broker, site: Site) -> None:
    """The closing task gets the answer, though the connection was not reading. Otherwise closing takes its timeout."""
    async with broker.open_channel(prefetch=MESSAGES) as channel:
        async with Inbox.consuming(channel, site.names.parked) as inbox:
            await eventually(lambda: is_full(inbox))
        began = time.monotonic()
    assert time.monotonic() - began < CLOSE_TIMEOUT


async def is_full(inbox: Inbox) -> bool:
    """And takes no more, though there is more."""
    before = held(inbox)
    await asyncio.sleep(0.2)
    return before > MAX_HELD_BYTES and held(inbox) == before


def held(inbox: Inbox) -> int:
    return sum(len(message.body) + len(message.header) for message in inbox._received)
