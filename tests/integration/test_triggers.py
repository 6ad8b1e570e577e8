"""Tests triggers through the real services: each is fired once, outside the rule, however often its command comes."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from producer.store.lanes import claim_due, look_ahead
from producer.store.retention import delete_finished
from producer.store.triggers import TRIGGERS
from shared.contract.fields import format_instant, idempotency_key
from tests.support.application import Application, an_application
from tests.support.builders import a_request, a_rule_request
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import a_session_waits_for_a_lock, insert_due, read_job, wait_for_status
from tests.support.receiver import a_receiver
from tests.support.services import running_consumer, running_delivery, running_producer
from tests.support.stores import Site
from tests.support.trigger_rows import insert_triggers_of_all_jobs, wait_until_fired

OF_THE_RULE = ("status", "next_run_at", "sequence", "revision", "rule_index", "last_due_at")


async def test_a_trigger_is_fired_once_now_outside_the_rule(
    site: Site, app: Application, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer does not poll in this test: the trigger itself wakes it."""
    monkeypatch.setattr("producer.lanes.PRODUCER_POLL_SECONDS", 3600.0)
    async with running_consumer(site), running_producer(site):
        await app.request(a_rule_request(topic="tea", payload={"cups": 2}))
        before = await read_job(database, "job-1")
        first = await app.trigger("job-1", "x")
        assert (first["outcome"], first["next_run_at"]) == ("triggered", "2030-06-01T12:00:00Z")
        await app.hears(1)
        await app.trigger("job-1", "y", payload=[1.50, None])
        [one, two] = [event.content for event in await app.hears(2)]
        after = await read_job(database, "job-1")
        assert [after[name] for name in OF_THE_RULE] == [before[name] for name in OF_THE_RULE]
    [row, other] = await wait_until_fired(database, 2)
    key = idempotency_key("job-1", row["requested_at"], "tea", "x")
    assert one == {
        "id": "job-1",
        "topic": "tea",
        "sequence": 1,
        "trigger_id": "x",
        "due_at": format_instant(row["requested_at"]),
        "fired_at": one["fired_at"],
        "payload": {"cups": 2},
        "idempotency_key": key,
    }
    assert (two["trigger_id"], two["sequence"], two["payload"]) == ("y", 2, [1.5, None])
    assert other["sequence"] == 2
    assert app.heard[0].raw.headers["idempotency-key"] == key
    assert app.heard[0].routing_key == "due.event.tea"


async def test_the_same_trigger_again_is_a_duplicate_before_and_after_it_was_fired(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        await app.request(a_request())
        assert (await app.trigger("job-1", "x"))["outcome"] == "triggered"
        assert (await app.trigger("job-1", "x", payload="other"))["outcome"] == "duplicate"
        async with running_producer(site):
            await wait_until_fired(database, 1)
            assert (await app.trigger("job-1", "x"))["outcome"] == "duplicate"
            assert (await app.trigger("job-1", "y"))["outcome"] == "triggered"
            await app.hears(2)
    assert [event.content["trigger_id"] for event in app.heard] == ["x", "y"]
    assert [event.content["sequence"] for event in app.heard] == [1, 2]


async def test_many_triggers_over_two_consumers_and_two_producers_are_fired_once_each_without_a_gap(
    site: Site, app: Application, database: Any
) -> None:
    """Three jobs have twenty triggers each. Each trigger is sent four times, all at once."""
    async with AsyncExitStack() as services:
        for size in (5, 30):
            await services.enter_async_context(running_consumer(site, batch_size=size))
            await services.enter_async_context(running_producer(site, batch_size=7))
        for job in range(3):
            await app.request(a_request(id=f"job-{job}"))
        sent = [({"id": f"job-{n % 3}", "trigger_id": f"t-{n % 60}"}) for n in range(240)]
        asked = await asyncio.gather(*(app.send(one, key="schedule.trigger", reply=True) for one in sent))
        outcomes = [(await app.reply(one))["outcome"] for one in asked]
        assert (outcomes.count("triggered"), outcomes.count("duplicate")) == (60, 180)
        rows = await wait_until_fired(database, 60)
        await app.hears(60)
    fired = [(event.content["id"], event.content["sequence"]) for event in app.heard]
    assert sorted(fired) == [(row["job_id"], row["sequence"]) for row in rows]
    assert sorted(fired) == [(f"job-{job}", n) for job in range(3) for n in range(1, 21)]
    assert len({event.content["idempotency_key"] for event in app.heard}) == 60


async def test_a_paused_job_can_be_triggered_and_stays_paused(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site), running_producer(site):
        await app.request(a_request())
        await app.pause("job-1")
        assert (await app.trigger("job-1", "x"))["outcome"] == "triggered"
        [event] = await app.hears(1)
        assert event.content["trigger_id"] == "x"
        assert (await read_job(database, "job-1"))["status"] == "paused"


@pytest.mark.parametrize("status", ["done", "cancelled"])
async def test_a_job_that_is_over_cannot_be_triggered(site: Site, app: Application, database: Any, status: str) -> None:
    async with running_consumer(site):
        await app.request(a_request())
        await database.execute("update jobs set status = $1, next_run_at = null, finished_at = now()", status)
        reply = await app.trigger("job-1", "x")
        assert (reply["outcome"], reply["errors"]) == ("rejected", [f"id: the job is {status}"])
        assert await database.fetchval("select count(*) from triggers") == 0
        assert await app.count(site.names.parked) == 0


@pytest.mark.parametrize(
    ("status", "fired"),
    [("done", True), ("done", False), ("cancelled", True), ("cancelled", False)],
)
async def test_a_trigger_that_comes_again_is_a_duplicate_even_if_its_job_has_ended_since(
    site: Site, app: Application, database: Any, status: str, fired: bool
) -> None:
    """If the job was cancelled before the trigger was fired, the trigger was dropped and the command is rejected."""
    async with running_consumer(site):
        await app.request(a_request())
        await app.trigger("job-1", "x")
        await database.execute("update triggers set fired_at = case when $1 then now() end", fired)
        await database.execute("update jobs set status = $1, next_run_at = null, finished_at = now()", status)
        dropped = status == "cancelled" and not fired
        assert (await app.trigger("job-1", "x"))["outcome"] == ("rejected" if dropped else "duplicate")
        assert (await app.trigger("job-1", "y"))["outcome"] == "rejected"
        assert await database.fetchval("select count(*) from triggers") == 1


async def test_a_cancel_drops_triggers_that_were_not_fired_and_a_done_job_keeps_them(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        for job_id in ("cancelled", "done"):
            await app.request(a_request(id=job_id))
            await app.trigger(job_id, "x")
        await app.cancel("cancelled")
        await database.execute("update jobs set status='done', next_run_at=null, finished_at=now() where id = 'done'")
        async with running_producer(site):
            [row] = await wait_until_fired(database, 1)
            assert row["job_id"] == "done"
            [event] = await app.hears(1)
            assert event.content["id"] == "done"


async def test_triggers_do_not_wait_for_a_poll_behind_those_of_a_cancelled_job(
    site: Site, app: Application, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every claim is full, mostly of triggers that it drops. One trigger was refused and waits until tomorrow."""
    monkeypatch.setattr("producer.lanes.PRODUCER_POLL_SECONDS", 3600.0)
    for prefix in ("cancelled-", "live-", "refused-"):
        await insert_due(database, 1, prefix=prefix, late=timedelta(days=-1))
    await insert_triggers_of_all_jobs(database, 100)
    await database.execute(
        "update jobs set status = 'cancelled', next_run_at = null, finished_at = now() where id like 'cancelled-%'"
    )
    await database.execute("delete from triggers where job_id not like 'cancelled-%' and sequence % 20 <> 0")
    await database.execute(
        "update triggers set fire_at = now() + case when job_id like 'refused-%' then interval '1 day'"
        " else make_interval(secs => sequence - 200) end"
    )
    async with running_producer(site, batch_size=5):
        await app.hears(5)
        assert {event.content["id"] for event in app.heard} == {"live-000001"}
        assert [event.content["sequence"] for event in app.heard] == [20, 40, 60, 80, 100]

        async def dropped() -> bool:
            return not await database.fetchval("select count(*) from triggers where job_id like 'cancelled-%'")

        await eventually(dropped)


async def test_a_look_ahead_leaves_out_triggers_that_another_session_has_locked(site: Site, database: Any) -> None:
    """Otherwise the producer would claim again and again, and find no row, until they are unlocked."""
    await insert_due(database, 1, late=timedelta(days=-1))
    await insert_triggers_of_all_jobs(database, 1)
    other = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        for held in ("jobs", "triggers"):
            async with other.transaction():
                await other.execute(f"select from {held} for no key update")
                assert await look_ahead(database, TRIGGERS) is None, held
        assert await look_ahead(database, TRIGGERS) is not None
    finally:
        await other.close(timeout=5)


async def test_a_cancel_waits_for_a_trigger_that_is_being_published(
    site: Site, app: Application, database: Any
) -> None:
    """Otherwise a trigger could be published after the reply to the cancel."""
    await insert_due(database, 1, late=timedelta(days=-1))
    await insert_triggers_of_all_jobs(database, 1)
    publishing = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        async with running_consumer(site):
            async with publishing.transaction():
                assert await claim_due(publishing, TRIGGERS, 10) is not None
                asked = await app.send({"id": "job-000001"}, key="schedule.cancel", reply=True)
                await eventually(lambda: a_session_waits_for_a_lock(database))
                assert asked not in app.replies
            assert (await app.reply(asked))["outcome"] == "cancelled"
        async with publishing.transaction():
            assert await claim_due(publishing, TRIGGERS, 10) is None, "cancelled: no trigger is left to fire"
        assert await database.fetchval("select count(*) from triggers") == 0
    finally:
        await publishing.close(timeout=5)


async def test_a_trigger_that_the_broker_refuses_is_tried_again_until_there_is_room(site: Site, database: Any) -> None:
    full = f"{site.prefix}full"
    await insert_due(database, 1, topic="full", late=timedelta(days=-1))
    await insert_triggers_of_all_jobs(database, 3)
    async with an_application(site, listen_to=None) as app, running_producer(site):
        await app.binds(full, "due.event.full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
        queue, heard = await app.channel.get_queue(full), 0

        async def all_three() -> bool:
            nonlocal heard
            while await queue.get(no_ack=True, fail=False):
                heard += 1
            assert heard >= 3
            return True

        await eventually(all_three, within=40)
        await wait_until_fired(database, 3)
        assert await database.fetchval("select max(refusals) from triggers") == 0, "a confirmed publish resets them"
        await app.channel.queue_delete(full)


async def test_a_trigger_reaches_the_webhook_with_its_id_and_a_key_of_its_own(
    site: Site, app: Application, database: Any
) -> None:
    async with (
        a_receiver() as receiver,
        running_consumer(site),
        running_producer(site),
        running_delivery(site),
    ):
        await app.request(a_request(webhook={"url": receiver.url}))
        await app.trigger("job-1", "x", payload=5)
        [call] = await receiver.called(1)
        [row] = await wait_until_fired(database, 1)
        assert (call.content["trigger_id"], call.content["sequence"], call.content["payload"]) == ("x", 1, 5)
        assert call.key == idempotency_key("job-1", row["requested_at"], "default", "x")


async def test_a_done_job_is_kept_until_its_triggers_are_fired_and_a_cancelled_one_is_not(database: Any) -> None:
    await insert_due(database, 3)
    await insert_triggers_of_all_jobs(database, 2)
    await database.execute(
        "update triggers set fired_at = now() where trigger_id = 'trigger-1' or job_id = 'job-000003'"
    )
    await database.execute(
        "update jobs set status = case id when 'job-000001' then 'cancelled' else 'done' end, next_run_at = null,"
        " finished_at = now() - interval '31 days'"
    )
    assert await delete_finished(database, timedelta(days=30), 10) == 2
    assert [row["id"] for row in await database.fetch("select id from jobs")] == ["job-000002"]
    assert await database.fetchval("select count(*) from triggers where fired_at is null") == 1, "still to be fired"
    await database.execute("update triggers set fired_at = now()")
    assert await delete_finished(database, timedelta(days=30), 10) == 1


async def test_fired_triggers_are_deleted_when_they_are_old_or_with_their_job(site: Site, database: Any) -> None:
    await insert_due(database, 3, late=timedelta(days=-1))
    await insert_triggers_of_all_jobs(database, 1)
    await database.execute("update triggers set fired_at = now() - interval '31 days' where job_id = 'job-000001'")
    await database.execute("update triggers set fired_at = now() - interval '29 days' where job_id <> 'job-000001'")
    await database.execute(
        "update jobs set status = 'cancelled', next_run_at = null, finished_at = now() - interval '31 days'"
        " where id = 'job-000002'"
    )
    async with running_producer(site):

        async def only_the_young_of_a_job_that_lives_is_left() -> bool:
            rows = await database.fetch("select job_id from triggers")
            assert [row["job_id"] for row in rows] == ["job-000003"]
            return True

        await eventually(only_the_young_of_a_job_that_lives_is_left)
        await wait_for_status(database, "job-000003", "pending")
