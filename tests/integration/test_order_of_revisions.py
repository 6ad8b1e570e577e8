"""Requests and cancels with revisions end the same in every order, over any number of consumers: the highest revision
wins, and at the same revision the cancel does.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import count
from typing import Any, NamedTuple

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from consumer.handler import BatchHandler
from consumer.metrics import Metrics
from shared.amqp.connection import Broker
from shared.amqp.message import IncomingMessage
from shared.amqp.publisher import Publisher
from shared.postgres.pool import open_pool
from tests.support.builders import a_request
from tests.support.eventually import PATIENCE
from tests.support.stores import Site, Stores, new_site

CONSUMERS = 3


class Sent(NamedTuple):
    is_cancel: bool
    job: int
    revision: int


COMMANDS = st.lists(st.builds(Sent, st.booleans(), st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=14)


class Stage(NamedTuple):
    """The consumers of a history and its database, in an event loop of their own."""

    runner: asyncio.Runner
    handlers: Sequence[BatchHandler]
    database: Any


@pytest.fixture(scope="module")
def stage(shared_stores: Stores) -> Iterator[Stage]:
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()
        try:
            yield runner.run(_open(shared_stores, opened, runner))
        finally:
            runner.run(opened.aclose())


async def _open(stores: Stores, opened: AsyncExitStack, runner: asyncio.Runner) -> Stage:
    site = await opened.enter_async_context(new_site(stores))
    handlers = [await _a_handler(site, opened) for _ in range(CONSUMERS)]
    database = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    opened.push_async_callback(database.close, timeout=5)
    return Stage(runner, handlers, database)


async def _a_handler(site: Site, opened: AsyncExitStack) -> BatchHandler:
    """Make a handler of which only `store` is used: its publisher has no connection."""
    publisher = Publisher(Broker(site.amqp_url, name="unused", names=site.names))
    pool = await opened.enter_async_context(open_pool(site.database_url_of("consumer"), "test", size=1))
    return BatchHandler(pool, publisher, site.names, Metrics(CollectorRegistry()), 1000, 5.0)


HISTORY = count()


@settings(max_examples=60, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(COMMANDS, st.randoms(use_true_random=False), st.integers(1, 5))
def test_any_order_over_several_consumers_ends_the_same(stage: Stage, sent: list[Sent], chance: Any, size: int) -> None:
    """Every command comes once or twice, in an order of its own, in batches that the consumers store all at once."""
    prefix = f"history-{next(HISTORY)}-"
    copies = [one for one in sent for _ in range(chance.randint(1, 2))]
    chance.shuffle(copies)
    messages = [_message(prefix, one) for one in copies]
    batches = [messages[start : start + size] for start in range(0, len(messages), size)]
    stage.runner.run(_store(stage.handlers, batches))
    rows = stage.runner.run(
        stage.database.fetch("select id, status, revision, payload from jobs where id like $1", f"{prefix}%")
    )
    assert {row["id"]: (row["status"], row["revision"], row["payload"]) for row in rows} == {
        f"{prefix}{job}": _expected([one for one in sent if one.job == job], rows, f"{prefix}{job}")
        for job in {one.job for one in sent}
    }


def _expected(sent: list[Sent], rows: Sequence[Any], job_id: str) -> tuple[str, int, str | None]:
    """A cancelled job has the request that it had when it was cancelled, which is the end's only dependence on the
    order.
    """
    asked = max((one.revision for one in sent if not one.is_cancel), default=-1)
    closed = max((one.revision for one in sent if one.is_cancel), default=-1)
    if asked > closed:
        return "pending", asked, str(asked)
    return "cancelled", closed, next((row["payload"] for row in rows if row["id"] == job_id), None)


async def _store(handlers: Sequence[BatchHandler], batches: Sequence[Sequence[IncomingMessage]]) -> None:
    async def consume(handler: BatchHandler, own: Sequence[Sequence[IncomingMessage]]) -> None:
        for batch in own:
            await handler.store(batch)

    shares = [(handler, batches[number :: len(handlers)]) for number, handler in enumerate(handlers)]
    await asyncio.gather(*(consume(handler, own) for handler, own in shares))


def _message(prefix: str, one: Sent) -> IncomingMessage:
    content: dict[str, Any] = {"id": f"{prefix}{one.job}", "revision": one.revision}
    if not one.is_cancel:
        content = a_request(**content, payload=one.revision)
    key = "schedule.cancel" if one.is_cancel else "schedule.request"
    body = json.dumps(content).encode()
    return IncomingMessage(1, body, "", key, None, None, None, None, None, None, None, None, None, {}, None, None)
