"""From the events of a batch to rows that a claim finds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
import msgspec
import pytest
from aiohttp import web

from delivery.events import NewDelivery, Unreadable, read_due
from delivery.intake import Replayed, Stored
from shared.contract.names import OPERATOR_HEADER
from shared.contract.replay import REPLAY_TYPE, write_replay
from shared.postgres.pool import Pool
from tests.support.application import Application
from tests.support.delivery_parts import a_claimer, a_handler, a_queue
from tests.support.delivery_rows import delivery_of, wait_for_deliveries, wait_for_delivery
from tests.support.due_events import a_due, publish_due, received
from tests.support.eventually import eventually
from tests.support.receiver import Call, a_receiver
from tests.support.services import running_delivery
from tests.support.stores import Site


async def test_a_stored_delivery_is_called_without_waiting_for_a_poll(
    site: Site, app: Application, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delivery.dispatch.dispatcher.CLAIM_POLL_SECONDS", 3600.0)
    async with a_receiver() as receiver, running_delivery(site):
        for number in range(5):
            await publish_due(app, a_due(f"tea-{number}", receiver.url))
            await wait_for_delivery(database, f"tea-{number}", "COMPLETED")


async def test_a_delivery_is_stored_as_pending_and_due_at_once(site: Site, database: Any) -> None:
    async with a_claimer(site, a_queue()) as claimer:
        await a_handler(claimer.pool).store([received(1, a_due("tea", "http://127.0.0.1:1/"))])
    row = await delivery_of(database, "tea")
    assert (row["status"], row["version"], row["next_attempt_at"]) == ("PENDING", 1, row["created_at"])


async def test_failed_deliveries_are_replayed_once_for_any_number_of_messages(site: Site, database: Any) -> None:
    async with a_claimer(site, a_queue()) as claimer:
        handler = a_handler(claimer.pool)
        await handler.store([received(1, a_due(name, "http://127.0.0.1:1/")) for name in ("tea", "coffee")])
        await database.execute(
            "update deliveries set status = 'PROCESSING', version = version + 1 where job_id = 'tea'"
        )
        await database.execute("""
            update deliveries set status = 'FAILED', version = version + 1, finished_at = now(), next_attempt_at = null,
                   failure_reason = 'timeout' where job_id = 'tea'""")
        event = received(1, a_due("milk", "http://127.0.0.1:1/"))
        asked = msgspec.structs.replace(
            event, type=REPLAY_TYPE, body=write_replay([1, 2, 77]), headers={OPERATOR_HEADER: "alice"}, user_id="ops"
        )
        wrong = msgspec.structs.replace(asked, body=b'{"deliveries": [0]}')
        for expected in (1, 0):
            results = await handler.store([asked, wrong, event])
            assert results[0] == Replayed(expected)
            assert isinstance(results[1], Unreadable)
            assert results[1].errors[0].startswith("deliveries: ")
            assert isinstance(results[2], Stored)
    replays = await database.fetch("select job_id, status from deliveries where replay_of is not null")
    assert [tuple(row) for row in replays] == [("tea", "PENDING")]
    told = await database.fetch("select job_id, by_user, operator from history where what = 'replayed'")
    assert [tuple(row) for row in told] == [("tea", "ops", "alice")]


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
            await wait_for_delivery(database, name, "PENDING")
        gate.set()
        await wait_for_deliveries(database, 3)
    assert [call.content["id"] for call in receiver.calls] == ["first", "second", "third"]


async def test_everything_that_an_event_says_reaches_its_claim(site: Site) -> None:
    webhook = {"headers": {"X-Own": "mine"}, "secret": "s", "max_retries": 2, "timeout_seconds": 7}
    due = a_due("tea", "http://127.0.0.1:1/x", webhook=webhook)
    async with a_claimer(site, a_queue()) as claimer:
        event = received(1, due)
        await a_handler(claimer.pool).store([event])
        [claimed] = (await claimer.claim_once()).rows
    new = read_due(event)
    assert isinstance(new, NewDelivery)
    stored = {name: getattr(new, name) for name in new.__struct_fields__}
    assert {name: getattr(claimed, name) for name in stored} == stored
    assert (claimed.version, claimed.retry_count) == (2, 0)
    assert claimed.created_at <= claimed.claimed_at


class LosesTheAnswer:
    """A pool whose connection is lost when Postgres has committed and before it can say so, the first time."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.lost = 0

    @asynccontextmanager
    async def acquire(self, timeout: float) -> AsyncIterator[Any]:
        async with self._pool.acquire(timeout=timeout) as connection:
            yield self if not self.lost else connection

    async def fetchval(self, *arguments: Any) -> Any:
        async with self._pool.acquire() as connection:
            await connection.fetchval(*arguments)
        self.lost += 1
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


async def test_what_was_stored_although_the_answer_was_lost_is_due_at_once(site: Site) -> None:
    """The batch is stored again, finds its rows, and they are called once."""
    batch = [received(tag, a_due(name, "http://127.0.0.1:1/")) for tag, name in enumerate(("tea", "milk"), 1)]
    async with a_claimer(site, a_queue(), connections=2) as claimer:
        handler = a_handler(cast("Pool", LosesTheAnswer(claimer.pool)))
        with pytest.raises(asyncpg.ConnectionDoesNotExistError):
            await handler.store(batch)
        await handler.store(batch)
        assert sorted(delivery.job_id for delivery in (await claimer.claim_once()).rows) == ["milk", "tea"]
        await handler.store(batch)
        assert (await claimer.claim_once()).rows == []
