"""The four flows of a schedule: one-shot, recurring, cancelled, and fired again after a crash (in acceptance/)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.contract.fields import format_instant, idempotency_key
from tests.support.application import Application
from tests.support.eventually import eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site


def in_seconds(seconds: float) -> str:
    return format_instant(datetime.now(UTC) + timedelta(seconds=seconds))


async def job(database: Any, job_id: str) -> Any:
    return await database.fetchrow("select * from jobs where id = $1", job_id)


async def test_a_one_shot_rings_once_at_its_moment_and_is_done(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site), running_producer(site):
        at = in_seconds(0.6)
        reply = await app.request({"id": "tea", "at": at, "topic": "kitchen.tea", "payload": {"cups": 2}})
        assert (reply["outcome"], reply["next_run_at"]) == ("accepted", at)
        assert (await job(database, "tea"))["status"] == "pending"

        [event] = await app.hears(1)
        assert event.routing_key == "due.event.kitchen.tea"
        assert event.raw.type == "ScheduleDue"
        assert event.content["id"] == "tea"
        assert event.content["sequence"] == 1
        assert event.content["due_at"] == at
        assert event.content["payload"] == {"cups": 2}
        due_at = datetime.fromisoformat(at)
        assert datetime.fromisoformat(event.content["fired_at"]) >= due_at, "never early"
        assert event.content["idempotency_key"] == idempotency_key("tea", due_at, "kitchen.tea")

        async def is_done() -> bool:
            return bool((await job(database, "tea"))["status"] == "done")

        await eventually(is_done)
        assert len(app.heard) == 1


async def test_a_rule_rings_again_and_again_until_it_ends(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site), running_producer(site):
        start = datetime.now(UTC).replace(microsecond=0)
        reply = await app.request({"id": "pulse", "rrule": "FREQ=SECONDLY;COUNT=3", "start_at": format_instant(start)})
        assert reply["outcome"] == "accepted"
        events = await app.hears(3)
        assert [e.content["sequence"] for e in events] == [1, 2, 3]
        assert [e.content["due_at"] for e in events] == [format_instant(start + timedelta(seconds=n)) for n in range(3)]
        assert len({e.content["idempotency_key"] for e in events}) == 3
        assert all(e.raw.message_id == e.content["idempotency_key"] for e in events)

        async def is_done() -> bool:
            row = await job(database, "pulse")
            return bool(row["status"] == "done" and row["next_run_at"] is None)

        await eventually(is_done)


async def test_a_cancelled_job_does_not_ring(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site):
        await app.request({"id": "never", "at": in_seconds(0.1)})
        assert (await app.cancel("never"))["outcome"] == "cancelled"
        assert (await job(database, "never"))["status"] == "cancelled"
        await app.request({"id": "after", "at": in_seconds(0.2)})
        # The later one rings; the cancelled one, which was due before it, has not.
        async with running_producer(site):
            [event] = await app.hears(1)
        assert event.content["id"] == "after"


@pytest.mark.parametrize("key", ["due.webhook.hooks", "due.event.hooks"])
async def test_the_routing_key_says_whether_there_is_a_webhook(site: Site, app: Application, key: str) -> None:
    webhook = {"webhook": {"url": "http://127.0.0.1:1/"}} if "webhook" in key else {}
    async with running_consumer(site), running_producer(site):
        await app.send({"id": "x", "at": in_seconds(0), "topic": "hooks", **webhook})
        [event] = await app.hears(1)
        assert event.routing_key == key
        assert ("webhook" in event.content) == bool(webhook)
