"""Brokers whose frames are smaller than usual, and one that sets no limit: what is parked fits, and is all there."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from shared.amqp.connection import Broker
from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage, PublishResult, RawMessage
from shared.amqp.parking import make_parked_copy, park
from shared.amqp.publisher import Publisher
from shared.runtime.loops import Stop
from stack.rabbitmq import RabbitMQ
from tests.support.delayed import properties
from tests.support.eventually import PATIENCE, eventually
from tests.support.stores import Site, Stores

pytestmark = pytest.mark.own_stores

BODIES = [b"", b"{", bytes(200_000)]
HEADERS: list[dict[str, Any]] = [{}, {"a": "x" * 2_000}, {"a": "x" * 20_000}]


@pytest.fixture(params=[0, 4096, 8192])
async def frame_max(stores: Stores, request: pytest.FixtureRequest) -> AsyncIterator[int]:
    """Of connections from now on."""
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    if 0 < request.param < 8192 and _version_of(stores.rabbitmq) >= (4, 1):
        pytest.skip("this RabbitMQ takes no frames smaller than 8,192 bytes")
    with _frame_max(stores.rabbitmq, request.param):
        yield request.param


def _version_of(rabbitmq: RabbitMQ) -> tuple[int, ...]:
    text = rabbitmq.ctl("eval", "io:format(rabbit_misc:version()).").split()[0].removesuffix("ok")
    return tuple(int(part) for part in text.split(".")[:2])


@contextmanager
def _frame_max(rabbitmq: RabbitMQ, size: int) -> Iterator[None]:
    before = rabbitmq.ctl("eval", "{ok, V} = application:get_env(rabbit, frame_max), V.").strip()
    rabbitmq.ctl("eval", f"application:set_env(rabbit, frame_max, {size}).")
    try:
        yield
    finally:
        rabbitmq.ctl("eval", f"application:set_env(rabbit, frame_max, {before}).")


def a_message(body: bytes, headers: dict[str, Any]) -> IncomingMessage:
    return IncomingMessage(
        1, body, "commands", "key", None, None, None, None, None, None, None, None, None, headers, None
    )


async def test_everything_can_be_parked_and_read_again(frame_max: int, site: Site) -> None:
    messages = [a_message(body, headers) for body in BODIES for headers in HEADERS]
    errors = ["body: " + "x" * 290] * 5
    copies = [make_parked_copy(one, exchange=site.names.parking, errors=errors, parked_by="test") for one in messages]
    async with (
        Broker(site.amqp_url, name="test", names=site.names).connected() as broker,
        Publisher(broker) as publisher,
    ):
        await park(publisher, copies, PATIENCE)
        async with (
            broker.open_channel(prefetch=len(copies)) as channel,
            Inbox.consuming(channel, site.names.parked) as inbox,
            asyncio.timeout(PATIENCE),
        ):
            parked = await inbox.next_batch(len(copies), 5.0, Stop())
    assert [message.body for message in parked] == [message.body for message in messages]
    assert all(message.headers["duebell-reason"].startswith(errors[0][:200]) for message in parked)
    kept = ["a" in message.headers for message in parked]
    assert kept == [
        "a" in one.headers and (frame_max == 0 or len(one.headers["a"]) < frame_max // 4) for one in messages
    ]


async def test_what_does_not_fit_is_left_out_and_its_neighbours_are_published(frame_max: int, site: Site) -> None:
    small, large = (
        RawMessage(site.names.parking, b"k", properties(headers={"a": "x" * size}), b"body") for size in (100, 20_000)
    )
    result = PublishResult.CONFIRMED if frame_max == 0 else PublishResult.TOO_LARGE
    async with (
        Broker(site.amqp_url, name="test", names=site.names).connected() as broker,
        Publisher(broker) as publisher,
    ):

        async def neighbours_are_published() -> bool:
            assert await publisher.publish_raw([small, large, small], PATIENCE) == [
                PublishResult.CONFIRMED, result, PublishResult.CONFIRMED,
            ]  # fmt: skip
            return True

        await eventually(neighbours_are_published)
        assert await publisher.publish_raw([large], PATIENCE) == [result]
