"""docs/operations/backup.md, followed on real processes: a dump, more work, a restore beside a broker that is newer."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aio_pika
import asyncpg

from stack.roles import APPLICATION
from tests.documents.blocks import blocks_of
from tests.documents.terminal import Terminal
from tests.support.application import Application
from tests.support.delayed import a_delayed_sender
from tests.support.eventually import PATIENCE, eventually
from tests.support.operator_terminal import operator_terminal
from tests.support.receiver import Receiver, a_receiver
from tests.support.services import service_process
from tests.support.stores import Site

BACK_UP, RESTORE, LOOK, LOST_WEBHOOKS = [
    block.text for block in blocks_of("docs/operations/backup.md") if block.language == "sh"
]
RESTORED = "duebell_restored"
FAR = "2199-01-01T00:00:00Z"
EARLIER = "2198-01-01T00:00:00Z"
HOUR = 3600


def restored(site: Site) -> Site:
    """The same broker and prefix, and the other database."""
    own = {
        service: {**urls, **{name: _in_restored(url) for name, url in urls.items() if name.startswith("DATABASE_")}}
        for service, urls in site.own.items()
    }
    return replace(site, database_url=_in_restored(site.database_url), own=own)


def _in_restored(url: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{RESTORED}"))


@asynccontextmanager
async def a_database_to_restore_into(site: Site) -> AsyncIterator[None]:
    """The page has the reader create it; the test removes it."""
    try:
        yield
    finally:
        connection = await asyncpg.connect(site.database_url, timeout=PATIENCE)
        await connection.execute(f"drop database if exists {RESTORED} with (force)")
        await connection.close(timeout=5)


@asynccontextmanager
async def services(site: Site, directory: Path, *names: str) -> AsyncIterator[None]:
    """Until the block ends, which stops them in good order. Loopback is open to webhooks."""
    async with AsyncExitStack() as stack:
        for name in names:
            process = stack.enter_context(service_process(name, site, directory, WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8"))
            # In a thread, like the commands: meanwhile the connections of the test need their heartbeats.
            stack.push_async_callback(asyncio.to_thread, process.terminate)
        yield


async def heard(app: Application, expected: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    """Wait until the events of each id have come, and return them all by id."""

    async def look() -> dict[str, list[dict[str, Any]]]:
        events: dict[str, list[dict[str, Any]]] = {}
        for event in app.heard:
            events.setdefault(event.content["id"], []).append(event.content)
        counted = {job_id: len(of_job) for job_id, of_job in events.items()}
        assert all(counted.get(job_id, 0) >= number for job_id, number in expected.items()), counted
        return events

    return await eventually(look, within=60.0)


async def test_a_restored_database_goes_on_beside_a_broker_that_is_newer(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    past = _seconds_ago(1.5 * HOUR)
    environment = {**site.environment, "RESTORED_URL": _in_restored(site.database_url)}
    async with (
        a_receiver() as receiver,
        a_delayed_sender(site, owner=APPLICATION) as sender,
        a_database_to_restore_into(site),
    ):
        with operator_terminal(tmp_path / "checkout", environment) as terminal:
            webhook = {"webhook": {"url": receiver.url}}
            async with services(site, tmp_path, "consumer", "delivery"):
                async with services(site, tmp_path, "producer"):
                    await app.request({"id": "rung before", "at": past})
                    await app.request({"id": "called before", "at": past, **webhook})
                    await heard(app, {"rung before": 1, "called before": 1})
                    await receiver.called(1)
                    await _all_delivered(database, 1)
                for job_id in ("cancelled after", "moved after"):
                    await app.request({"id": job_id, "at": EARLIER})
                await app.request({"id": "rings after", "at": past})
                await app.request({"id": "called after", "at": past, **webhook})
                await app.request({"id": "rule", "start_at": past, "every_seconds": HOUR})
                await sender.send(b"passed on after", headers={"x-delay": 1})
                await _held(database, 1)

                await asyncio.to_thread(terminal.run, BACK_UP)

                await sender.send(b"taken in after", headers={"x-delay": HOUR * 1000})
                await _held(database, 2)
                assert (await app.cancel("cancelled after"))["outcome"] == "cancelled"
                assert (await app.request({"id": "moved after", "at": FAR, "revision": 2}))["outcome"] == "rescheduled"
                assert (await app.request({"id": "new after", "at": FAR}))["outcome"] == "accepted"
                async with services(site, tmp_path, "producer"):
                    await heard(app, {"rings after": 1, "called after": 1, "rule": 2})
                    await _all_delivered(database, 2)
                    await sender.hears(1)

            await app.send({"id": "in the inbox", "at": FAR})
            await asyncio.to_thread(terminal.run, RESTORE)
            await asyncio.to_thread(terminal.run, LOOK)
            await asyncio.to_thread(terminal.shows, '…"id": "rings after"…')
            await _look_at_what_is_restored(restored(site), app, receiver, tmp_path, terminal)
        assert [message.body for message in sender.heard] == [b"passed on after"] * 2


async def _look_at_what_is_restored(
    site: Site, app: Application, receiver: Receiver, directory: Path, terminal: Terminal
) -> None:
    database = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        async with services(site, directory, "consumer"):
            assert (await app.query("in the inbox"))["outcome"] == "found"
            assert (await app.query("new after"))["outcome"] == "unknown"
            assert (await app.request({"id": "new after", "at": FAR}))["outcome"] == "accepted"
            assert (await app.query("moved after"))["next_run_at"] == EARLIER
            assert (await app.request({"id": "moved after", "at": FAR, "revision": 2}))["outcome"] == "rescheduled"
            assert (await app.cancel("cancelled after"))["outcome"] == "cancelled"
            assert (await app.request({"id": "rung before", "at": FAR}))["outcome"] == "duplicate"
            async with services(site, directory, "producer", "delivery"):
                events = await heard(app, {"rings after": 2, "called after": 2, "rule": 4})
                await _all_delivered(database, 2)
                await _held(database, 0)
            async with services(site, directory, "producer"):
                lost = {"id": "lost webhook", "at": _seconds_ago(1), "webhook": {"url": receiver.url}}
                await _lose_a_webhook(app, lost, database)
                await asyncio.to_thread(terminal.run, LOST_WEBHOOKS)
                await asyncio.to_thread(terminal.shows, "lost webhook | 1 | …\n(1 row)")
                async with services(site, directory, "delivery"):
                    assert (await app.request({**lost, "revision": 2}))["outcome"] == "accepted"
                    await _all_delivered(database, 3)
        keys = {job_id: [event["idempotency_key"] for event in of_job] for job_id, of_job in events.items()}
        assert len(keys["rung before"]) == len(keys["called before"]) == 1
        assert len(set(keys["rings after"])) == len(set(keys["called after"])) == 1
        assert keys["rule"][:2] == keys["rule"][2:]
        assert [event["sequence"] for event in events["rule"]] == [1, 2, 1, 2]
        [before], [after] = set(keys["called before"]), set(keys["called after"])
        assert {key: receiver.keys[key] for key in (before, after)} == {before: 1, after: 2}
        assert len(receiver.calls) == 4
        assert await app.count(app.names.parked) == 0
    finally:
        await database.close(timeout=5)


async def _lose_a_webhook(app: Application, lost: dict[str, Any], database: Any) -> None:
    """As a broker does that comes back empty: the event was published, and delivery never hears of it."""
    await app.request(lost)

    async def is_done() -> bool:
        return bool(await database.fetchval("select status = 'done' from jobs where id = 'lost webhook'"))

    await eventually(is_done)
    queue = await app.channel.get_queue(app.names.deliveries)
    await eventually(lambda: _purge(queue))


def _seconds_ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


async def _purge(queue: aio_pika.abc.AbstractQueue) -> bool:
    return bool((await queue.purge()).message_count)


async def _held(database: Any, number: int) -> None:
    """Wait until so many delayed messages wait for their moment."""

    async def look() -> bool:
        assert (found := await database.fetchval("select count(*) from delayed_messages")) == number, found
        return True

    await eventually(look, within=60.0)


async def _all_delivered(database: Any, number: int) -> None:
    async def look() -> bool:
        states = [row["status"] for row in await database.fetch("select status from deliveries")]
        assert states == ["COMPLETED"] * number, states
        return True

    await eventually(look, within=60.0)
