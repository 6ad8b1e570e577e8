"""Commands through the real consumer are stored, answered and parked, in any order and any number of times."""

import asyncio
import json
import random
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import aio_pika
import asyncpg
import pytest

from shared.postgres import wake_producers
from tests.support.application import Application, an_application
from tests.support.builders import a_request, in_seconds
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import read_job, wait_for_status
from tests.support.services import running_consumer
from tests.support.stores import Site, remove_topology


async def test_a_row_that_postgres_refuses_is_parked_alone(site: Site, app: Application, database: Any) -> None:
    await database.execute("alter table jobs add constraint nothing_red check (topic <> 'red')")
    for number in range(20):
        await app.send(a_request(id=f"job-{number}", topic="red" if number == 7 else "green"))
    async with running_consumer(site):
        [parked] = await app.parked(1)
        assert json.loads(parked.body)["id"] == "job-7"
        assert "nothing_red" in str(parked.headers["duebell-reason"])

        async def others() -> bool:
            return bool(await database.fetchval("select count(*) from jobs") == 19)

        await eventually(others)


async def test_a_payload_comes_out_of_the_database_byte_for_byte(site: Site, app: Application, database: Any) -> None:
    payload = (
        '{"nul": "\\u0000", "big": 12345678901234567890123, "exact": 0.10, "e": 1E2,  "emoji": "\\ud83d\\ude00 😀"}'
    )
    async with running_consumer(site):
        await app.send(f'{{"id": "x", "at": "2030-01-01T00:00:00Z", "payload": {payload}}}'.encode())
        assert (await wait_for_status(database, "x", "pending"))["payload"] == payload


async def test_the_same_command_again_changes_nothing(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site):
        first = await app.request(a_request(payload="first"))
        row = await read_job(database, "job-1")
        again = await app.request(a_request(payload="second", at="2031-01-01T00:00:00Z"))
        assert (first["outcome"], again["outcome"]) == ("accepted", "duplicate")
        assert again["next_run_at"] == first["next_run_at"]
        assert await read_job(database, "job-1") == row


async def test_a_higher_revision_reschedules_and_a_lower_one_does_not(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        await app.request(a_request(revision=5, payload=5))
        lower = await app.request(a_request(revision=4, payload=4))
        assert lower["outcome"] == "duplicate"
        higher = await app.request(a_request(revision=6, at="2031-01-01T00:00:00Z"))
        assert (higher["outcome"], higher["next_run_at"]) == ("rescheduled", "2031-01-01T00:00:00Z")
        row = await read_job(database, "job-1")
        assert (row["revision"], row["payload"]) == (6, None), "a reschedule replaces the whole request"


async def test_a_cancel_that_overtakes_its_request_cancels_the_request_too(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        unknown = await app.cancel("job-1", revision=2, note="never mind")
        assert unknown["outcome"] == "unknown"
        assert unknown["errors"] == ["id: there is no such job; a request with a revision higher than 2 is taken"]
        for revision in (1, 2):
            reply = await app.request(a_request(revision=revision))
            assert reply["outcome"] == "duplicate"
            assert reply["errors"][0].startswith("id: the job is cancelled since 20")
            assert reply["errors"][0].endswith("; a revision higher than 2 uses the id again")
        assert (await read_job(database, "job-1"))["status"] == "cancelled"
        assert (await app.cancel("job-1"))["outcome"] == "cancelled", "the id is known now"
        assert await app.count(site.names.parked) == 0, "nothing is wrong with a request that was overtaken"


async def test_a_late_cancel_is_rejected_and_a_late_reschedule_begins_a_new_life(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        await app.request(a_request())
        await database.execute("update jobs set status = 'done', next_run_at = null, finished_at = now()")
        cancel = await app.cancel("job-1")
        assert cancel["outcome"] == "rejected"
        assert "came late" in cancel["errors"][0]
        assert (await read_job(database, "job-1"))["status"] == "done"
        assert (await app.request(a_request(revision=2)))["outcome"] == "accepted"
        row = await read_job(database, "job-1")
        assert (row["status"], row["revision"], row["life"]) == ("pending", 2, 2)
        assert await app.count(site.names.parked) == 0


async def test_the_reply_shows_the_next_three_instants(site: Site, app: Application) -> None:
    async with running_consumer(site):
        reply = await app.request(
            {"id": "x", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin", "start_at": "2030-03-29T10:00:00"}
        )
        # Friday 29 March is over for nine o'clock; the clocks change on the Sunday.
        assert reply["upcoming"] == ["2030-04-01T07:00:00Z", "2030-04-02T07:00:00Z", "2030-04-03T07:00:00Z"]
        assert reply["next_run_at"] == reply["upcoming"][0]


async def test_a_reply_to_a_missing_queue_delays_no_other_command(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site):
        queue, app.reply_queue = app.reply_queue, "a-queue-that-was-never-there"
        await app.send(a_request(id="no-queue"), reply=True)
        app.reply_queue = queue
        assert (await app.request(a_request(id="with-queue")))["outcome"] == "accepted"
        await wait_for_status(database, "no-queue", "pending")


@pytest.mark.parametrize("address", ["amq.rabbitmq.reply-to.garbage", "amq.rabbitmq.reply-to.made.up"])
async def test_a_made_up_direct_reply_address_loses_no_other_reply(site: Site, app: Application, address: str) -> None:
    async with running_consumer(site):
        await app.request(a_request(id="before"))
        queue, app.reply_queue = app.reply_queue, address
        await app.send(a_request(id="made-up"), reply=True)
        app.reply_queue = queue
        assert (await app.request(a_request(id="after")))["outcome"] == "accepted"


async def test_a_direct_reply_address_that_the_broker_made_is_answered(site: Site, app: Application) -> None:
    async def on_reply(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        app.replies[message.correlation_id or ""] = json.loads(message.body)

    direct = await app.channel.get_queue("amq.rabbitmq.reply-to", ensure=False)
    await direct.consume(on_reply, no_ack=True)
    app.reply_queue = direct.name
    async with running_consumer(site):
        assert (await app.request(a_request()))["outcome"] == "accepted"


async def test_a_deleted_parking_queue_is_declared_anew(site: Site, app: Application) -> None:
    async with running_consumer(site):
        await app.request(a_request(id="before"))
        await app.channel.queue_delete(site.names.parked)
        assert (await app.request({"id": "bad"}))["outcome"] == "rejected"
        [parked] = await app.parked(1)
        assert json.loads(parked.body) == {"id": "bad"}


async def test_a_parked_message_keeps_its_properties(site: Site, app: Application) -> None:
    await app.commands.publish(
        aio_pika.Message(
            b"not JSON",
            content_type="text/plain",
            content_encoding="gzip",
            message_id="message-7",
            app_id="billing",
            priority=3,
            correlation_id="c-1",
            headers={"their": "own"},
        ),
        "schedule.request",
    )
    async with running_consumer(site):
        [parked] = await app.parked(1)
    assert (parked.content_type, parked.content_encoding) == ("text/plain", "gzip")
    assert (parked.app_id, parked.priority, parked.correlation_id) == ("billing", 3, "c-1")
    assert parked.headers["their"] == "own"
    assert parked.headers["duebell-message-id"] == "message-7"


@pytest.mark.parametrize("seed", [1, 2])
async def test_four_consumers_with_shuffled_commands_end_where_one_would(
    site: Site, app: Application, database: Any, seed: int
) -> None:
    """Every id gets three revisions, each twice, and every third id a cancel: in any order, over four consumers."""
    chance, ids = random.Random(seed), [f"job-{number:03}" for number in range(120)]
    commands: list[tuple[str, Any]] = [
        ("schedule.request", a_request(id=job_id, revision=revision, payload=revision))
        for job_id in ids
        for revision in (1, 2, 3)
        for _ in range(2)
    ]
    commands += [("schedule.cancel", {"id": job_id, "revision": 3}) for job_id in ids[::3]]
    chance.shuffle(commands)
    async with AsyncExitStack() as consumers:
        for size in (3, 7, 20, 50):
            await consumers.enter_async_context(running_consumer(site, batch_size=size))
        await asyncio.gather(*(app.send(content, key=key) for key, content in commands))

        async def settled() -> bool:
            cancelled = await database.fetchval("select count(*) from jobs where status = 'cancelled'")
            newest = await database.fetchval("select count(*) from jobs where status = 'pending' and revision = 3")
            assert (cancelled, newest) == (40, 80)
            return True

        await eventually(settled)

        async def inbox_is_empty() -> bool:
            return await app.count(site.names.inbox) == 0

        await eventually(inbox_is_empty)
    rows = await database.fetch("select id, payload from jobs where status = 'pending'")
    assert {row["payload"] for row in rows} == {"3"}
    assert {row["id"] for row in rows} == set(ids) - set(ids[::3])
    assert await app.count(site.names.parked) == 0


async def test_producers_are_woken_only_for_jobs_that_are_due_soon(site: Site, app: Application) -> None:
    notified: list[str] = []
    listener = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        await listener.add_listener(wake_producers.CHANNEL, lambda *_: notified.append("woken"))
        async with running_consumer(site):
            await app.request(a_request(id="tomorrow", at=in_seconds(86_400)))
            await app.request(a_request(id="now", at=in_seconds(0)))

            async def notified_once() -> bool:
                return len(notified) == 1

            await eventually(notified_once)
            await listener.execute("select 1")
            assert notified == ["woken"]
    finally:
        await listener.close(timeout=5)


async def test_environments_behind_different_prefixes_do_not_meet(site: Site, app: Application, database: Any) -> None:
    other = replace(site, prefix=f"{site.prefix}other.")
    try:
        async with running_consumer(other), an_application(other) as other_app:
            await app.send(a_request(id="first"))
            assert (await other_app.request(a_request(id="second")))["outcome"] == "accepted"
            assert await app.count(site.names.inbox) == 1
            assert await read_job(database, "first") is None
    finally:
        await remove_topology(other)
