"""What is stored while there is room for it is ours at once; what is not waits for a claim; and no place is lost."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import asyncpg
import pytest
from aiohttp import web

from delivery.breaker import BreakerPolicy
from delivery.hosts import Hosts
from delivery.store import claim_oldest
from shared.database import Pool
from shared.received import Received
from tests.support.application import Application
from tests.support.deliveries import all_end, delivery_of, ends
from tests.support.dispatching import LEASE_MARGIN, a_claimer, a_dispatcher, a_handler
from tests.support.due import a_due, publish_due
from tests.support.eventually import eventually
from tests.support.receiver import Call, a_receiver
from tests.support.services import running_delivery
from tests.support.stores import Site

STATES = "select idempotency_key, status, version from deliveries order by id"


def received(tag: int, due: dict[str, Any]) -> Received:
    nothing = dict.fromkeys(Received.__struct_fields__)
    return Received(**{**nothing, "tag": tag, "body": json.dumps(due).encode(), "headers": {}})  # type: ignore[arg-type]


async def test_a_delivery_that_has_room_is_never_claimed(site: Site, app: Application, database: Any) -> None:
    async with a_receiver() as receiver, running_delivery(site):
        await publish_due(app, *(a_due(f"tea-{number}", receiver.url) for number in range(5)))
        await all_end(database, 5)
    assert [row["version"] for row in await database.fetch(STATES)] == [2] * 5, "stored, and recorded"


async def test_one_without_room_waits_for_a_claim_the_oldest_first(site: Site, app: Application, database: Any) -> None:
    gate = asyncio.Event()

    async def hold(_: Call) -> web.Response:
        await gate.wait()
        return web.Response()

    async with a_receiver(hold) as receiver, running_delivery(site, max_in_flight_per_host=1):
        await publish_due(app, a_due("first", receiver.url))

        async def called() -> bool:
            return len(receiver.calls) == 1

        await eventually(called)
        for name in ("second", "third"):
            await publish_due(app, a_due(name, receiver.url))
            await ends(database, name, "PENDING")
        gate.set()
        await all_end(database, 3)
    assert [call.content["id"] for call in receiver.calls] == ["first", "second", "third"]


async def test_a_lease_from_the_beginning_ends_as_any_other(site: Site, database: Any) -> None:
    """Should its worker die before it has called: the row is due again, and somebody else's."""
    hosts = Hosts(max_in_flight=10, max_per_host=10, policy=BreakerPolicy())
    due = a_due("tea", "http://127.0.0.1:1/", webhook={"timeout_seconds": 2})
    async with a_claimer(site, hosts) as claimer:
        await a_handler(a_dispatcher(claimer)).store([received(1, due)])
        row = await delivery_of(database, "tea")
        assert (row["status"], row["version"]) == ("PROCESSING", 1)
        lease = row["next_attempt_at"] - row["created_at"]
        assert lease.total_seconds() == 2 + LEASE_MARGIN
        async with claimer.pool.acquire() as connection:
            room = claimer._room()
            assert (await claim_oldest(connection, room, 30.0, 10))[0] == []
            [claimed], _ = await claim_oldest(connection, room, 30.0, 10, row["next_attempt_at"])
    assert (claimed.job_id, claimed.version) == ("tea", 2)


async def test_what_is_handed_over_is_what_a_claim_would_give(site: Site, database: Any) -> None:
    hosts = Hosts(max_in_flight=10, max_per_host=10, policy=BreakerPolicy())
    due = a_due("tea", "http://127.0.0.1:1/x", webhook={"headers": {"X-Own": "mine"}, "secret": "s", "max_retries": 2})
    async with a_claimer(site, hosts) as claimer:
        dispatcher = a_dispatcher(claimer)
        await a_handler(dispatcher).store([received(1, due)])
        [held] = dispatcher._line.take_all()
        row = await delivery_of(database, "tea")
        async with claimer.pool.acquire() as connection:
            [claimed], _ = await claim_oldest(connection, claimer._room(), 30.0, 10, row["next_attempt_at"])
    ours, theirs = (
        {name: getattr(delivery, name) for name in delivery.__struct_fields__ if name not in {"version", "claimed_at"}}
        for delivery in (held.delivery, claimed)
    )
    assert ours == theirs
    assert held.delivery.claimed_at == row["created_at"]
    assert "mine" in held.delivery.headers


async def test_copies_and_batches_that_fail_keep_no_places(site: Site, database: Any) -> None:
    hosts = Hosts(max_in_flight=10, max_per_host=10, policy=BreakerPolicy())
    tea, milk = (a_due(name, "http://127.0.0.1:1/") for name in ("tea", "milk"))
    batch = [received(tag, due) for tag, due in enumerate((tea, milk, tea), 1)]
    async with a_claimer(site, hosts) as claimer:
        handler = a_handler(a_dispatcher(claimer))
        await database.execute("alter table deliveries rename to gone")
        with pytest.raises(asyncpg.UndefinedTableError):
            await handler.store(batch)
        assert hosts.free == 10
        await database.execute("alter table gone rename to deliveries")
        await handler.store(batch)
        assert hosts.free == 8
        await handler.store(batch)
        assert hosts.free == 8
    assert [row["status"] for row in await database.fetch(STATES)] == ["PROCESSING"] * 2


class LosesTheAnswer:
    """A pool whose connection is lost when Postgres has committed and before it can say so, the first time."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.lost = 0

    @asynccontextmanager
    async def acquire(self, timeout: float) -> AsyncIterator[Any]:
        async with self._pool.acquire(timeout=timeout) as connection:
            yield self if not self.lost else connection

    async def fetchrow(self, *arguments: Any) -> Any:
        async with self._pool.acquire() as connection:
            await connection.fetchrow(*arguments)
        self.lost += 1
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


async def test_what_was_stored_although_the_answer_was_lost_is_due_at_once(site: Site, database: Any) -> None:
    """Its lease is ours, and nobody was told to call: it must not wait until the lease is over."""
    hosts = Hosts(max_in_flight=10, max_per_host=10, policy=BreakerPolicy())
    batch = [received(tag, a_due(name, "http://127.0.0.1:1/")) for tag, name in enumerate(("tea", "milk"), 1)]
    async with a_claimer(site, hosts, connections=2) as claimer:
        handler = replace(a_handler(a_dispatcher(claimer)), pool=cast("Pool", LosesTheAnswer(claimer.pool)))
        with pytest.raises(asyncpg.ConnectionDoesNotExistError):
            await handler.store(batch)
        assert await claimer.claim_once() == [], "they are leased"
        await handler.store(batch)
        assert sorted(delivery.job_id for delivery in await claimer.claim_once()) == ["milk", "tea"]
        await handler.store(batch)
        assert await claimer.claim_once() == [], "and nobody else's lease is touched"
