"""Tests how a producer fires: refused and unrouted events, late jobs, rules that catch up, retention and wakeups."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import aio_pika
import pytest

from producer.decisions.plan import MAX_TURN_OCCURRENCES
from shared.contract.fields import format_instant
from tests.support.application import Application, an_application
from tests.support.builders import in_seconds
from tests.support.eventually import eventually
from tests.support.job_rows import insert_due, read_job, wait_for_status, wait_until_none_pending
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site, Stores


async def test_an_event_without_a_queue_is_kept_as_unrouted_and_its_job_goes_on(site: Site, database: Any) -> None:
    async with an_application(site, listen_to=None) as app, running_producer(site):
        await insert_due(database, 3)
        await wait_until_none_pending(database)
        assert await app.count(site.names.unrouted) == 3


async def test_a_webhook_event_waits_in_the_delivery_queue(site: Site, database: Any) -> None:
    await insert_due(database, 1)
    await database.execute("""update jobs set webhook = '{"url": "http://127.0.0.1/"}'""")
    async with an_application(site, listen_to=None) as app, running_producer(site):
        await wait_until_none_pending(database)
        assert await app.count(site.names.deliveries) == 1


async def test_a_job_whose_queue_is_full_keeps_its_moment_and_is_tried_again_until_there_is_room(
    site: Site, database: Any
) -> None:
    full = f"{site.prefix}full"
    async with an_application(site, listen_to=None) as app:
        await app.binds(full, "due.event.full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
        await insert_due(database, 3, topic="full")
        due_at = (await read_job(database, "job-000001"))["next_run_at"]
        async with running_producer(site):

            async def refused_twice() -> Any:
                rows = await database.fetch("select * from jobs where refusals >= 2 order by id")
                assert len(rows) >= 1
                return rows

            for row in await eventually(refused_twice):
                assert (row["status"], row["next_run_at"]) == ("pending", due_at)
                assert row["retry_at"] > row["next_run_at"]
            queue = await app.channel.get_queue(full)
            heard = []

            async def all_three() -> bool:
                while message := await queue.get(no_ack=True, fail=False):
                    heard.append(json.loads(message.body))
                assert len(heard) >= 3
                return True

            await eventually(all_three, within=40)
            await wait_until_none_pending(database)
            assert {event["due_at"] for event in heard} == {format_instant(due_at)}
            assert {event["id"] for event in heard} == {f"job-{number:06}" for number in (1, 2, 3)}
        await app.channel.queue_delete(full)


async def test_a_limit_that_is_lifted_from_a_full_queue_is_noticed(stores: Stores, site: Site, database: Any) -> None:
    """An operator lifts the limit. RabbitMQ 3.10 goes on refusing on a channel on which it has refused before."""
    if stores.rabbitmq is None:
        pytest.skip("the test may not set policies on a given broker")
    full, policy, ctl = f"{site.prefix}lifted", f"{site.prefix}policy", stores.rabbitmq.ctl
    limit = '{"max-length": 1, "overflow": "reject-publish"}'
    async with an_application(site, listen_to=None) as app:
        await app.binds(full, "due.event.full", **{"x-queue-type": "quorum"})
        for _ in range(2):
            await app.channel.default_exchange.publish(aio_pika.Message(b"{}"), full)
        await asyncio.to_thread(ctl, "set_policy", policy, f"^{re.escape(full)}$", limit, "--apply-to", "queues")
        await insert_due(database, 5, topic="full")
        async with running_producer(site):

            async def refused_twice() -> bool:
                return bool(await database.fetchval("select exists(select from jobs where refusals >= 2)"))

            await eventually(refused_twice)
            await asyncio.to_thread(ctl, "clear_policy", policy)
            await wait_until_none_pending(database)
        assert await app.count(full) == 2 + 5
        await app.channel.queue_delete(full)


async def test_ten_thousand_refused_jobs_delay_no_other_job(site: Site, database: Any) -> None:
    """The broker refuses each of them once. Then they wait in the retry lane, and claims of other lanes skip them."""
    full = f"{site.prefix}full"
    async with an_application(site, listen_to="due.event.lively") as app:
        await app.binds(full, "due.event.full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
        await insert_due(database, 10_000, topic="full", prefix="full-")
        async with running_producer(site):

            async def nearly_all_are_refused() -> bool:
                return bool(await database.fetchval("select count(*) from jobs where refusals > 0") >= 9_999)

            await eventually(nearly_all_are_refused, within=60)
            await insert_due(database, 200, topic="lively", prefix="lively-")
            await app.hears(200)
            pending = await database.fetchval("select count(*) from jobs where id like 'full-%' and status = 'pending'")
            assert pending >= 9_998
        await app.channel.queue_delete(full)


async def test_overdue_jobs_do_not_delay_jobs_that_are_due_now(site: Site, app: Application, database: Any) -> None:
    """Twenty thousand jobs are an hour late when fifty come due. The fifty are fired while most others still wait."""
    await insert_due(database, 20_000, prefix="old-", late=timedelta(hours=1))
    async with running_producer(site):
        await app.hears(100)
        await insert_due(database, 50, prefix="due-now-")

        async def jobs_due_now_are_done() -> bool:
            return bool(
                await database.fetchval("select count(*) from jobs where id like 'due-now-%' and status = 'done'") == 50
            )

        await eventually(jobs_due_now_are_done, within=60)
        still_waiting = await database.fetchval("select count(*) from jobs where status = 'pending'")
        assert still_waiting > 2_000, "all overdue jobs were fired before those due now: this shows nothing"


async def test_a_deleted_events_exchange_is_declared_anew_and_nothing_is_lost(
    site: Site, app: Application, database: Any
) -> None:
    async with running_producer(site):
        await insert_due(database, 1, prefix="before-")
        await app.hears(1)
        await app.channel.exchange_delete(site.names.events)
        await insert_due(database, 50, prefix="after-")
        await wait_until_none_pending(database)
        # The application's bindings were deleted with the exchange: events published since then are kept as unrouted.
        assert await app.count(site.names.unrouted) == 50


async def test_an_event_that_even_the_unrouted_queue_cannot_take_stays_pending_until_it_can(
    site: Site, database: Any
) -> None:
    async with an_application(site, listen_to=None) as app, running_producer(site):
        await insert_due(database, 1, prefix="before-")
        await wait_until_none_pending(database)
        await app.channel.queue_delete(site.names.unrouted)
        await insert_due(database, 3, prefix="after-")
        await wait_until_none_pending(database)
        assert await app.count(site.names.unrouted) == 3, "the queue was declared again, and no event was lost"
        versions = await database.fetch("select version from jobs where id like 'after-%'")
        assert {row["version"] for row in versions} == {3}, "stored, refused once, done"


async def test_a_rule_far_behind_catches_up_in_order_and_without_gaps(
    site: Site, app: Application, database: Any
) -> None:
    count = 3 * MAX_TURN_OCCURRENCES + 5
    start = (datetime.now(UTC) - timedelta(hours=5)).replace(microsecond=0)
    rule = {"id": "rule", "rrule": f"FREQ=MINUTELY;COUNT={count}", "start_at": format_instant(start)}
    async with running_consumer(site), running_producer(site):
        await app.send(rule)
        events = await app.hears(count)
        row = await wait_for_status(database, "rule", "done")
        assert [event.content["sequence"] for event in events] == list(range(1, count + 1))
        assert [event.content["due_at"] for event in events] == [
            format_instant(start + timedelta(minutes=n)) for n in range(count)
        ]
        assert row["sequence"] == count


@pytest.mark.parametrize(("policy", "published"), [("all", 60), ("latest", 2), ("skip", 1)])
async def test_what_a_rule_does_after_an_hour_of_downtime(
    site: Site, app: Application, database: Any, policy: str, published: int
) -> None:
    """The rule has missed sixty occurrences. The last is half a minute late, within the grace of a minute: it is
    published under each policy.
    """
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=59, seconds=30)
    request = {"id": "rule", "rrule": "FREQ=MINUTELY", "start_at": format_instant(start), "misfire": policy}
    async with running_consumer(site), running_producer(site):
        await app.send(request)
        await app.hears(published)

        async def caught_up() -> Any:
            row = await read_job(database, "rule")
            assert row["next_run_at"] == start + timedelta(minutes=60)
            return row

        row = await eventually(caught_up)
        assert row["sequence"] == len(app.heard) == published
        assert app.heard[-1].content["due_at"] == format_instant(start + timedelta(minutes=59))
        if policy == "latest":
            assert app.heard[0].content["due_at"] == format_instant(start + timedelta(minutes=58))


async def test_a_late_one_shot_under_skip_is_done_without_an_event(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site), running_producer(site):
        await app.send({"id": "skipped", "at": in_seconds(-120), "misfire": "skip"})
        await wait_for_status(database, "skipped", "done")
        await app.send({"id": "after", "at": in_seconds(0)})
        [event] = await app.hears(1)
        assert event.content["id"] == "after"


async def test_a_rule_that_can_no_longer_be_read_waits_alone(site: Site, app: Application, database: Any) -> None:
    broken = '{"start_at": "2020-01-01T00:00:00Z", "timezone": "Europe/Atlantis", "rrule": "FREQ=DAILY"}'
    await insert_due(database, 1, prefix="broken-", rule=broken)
    await insert_due(database, 5, prefix="sound-")
    async with running_producer(site):
        await app.hears(5)

        async def is_postponed() -> bool:
            row = await read_job(database, "broken-000001")
            return bool(row["status"] == "pending" and row["refusals"] >= 1)

        await eventually(is_postponed)
    assert {event.content["id"][:5] for event in app.heard} == {"sound"}


async def test_a_payload_travels_the_whole_way_byte_for_byte(site: Site, app: Application) -> None:
    payload = '{"nul": "\\u0000", "big": 12345678901234567890123, "exact": 0.10,  "e": 1E2}'
    async with running_consumer(site), running_producer(site):
        await app.send(f'{{"id": "x", "at": "{in_seconds(0)}", "payload": {payload}}}'.encode())
        [event] = await app.hears(1)
        assert f'"payload":{payload}'.encode() in event.raw.body


async def test_terminal_rows_are_deleted_when_they_are_old_enough(site: Site, database: Any) -> None:
    await insert_due(database, 2_500, prefix="old-")
    await insert_due(database, 10, prefix="new-")
    await insert_due(database, 10, prefix="pending-", late=timedelta(days=-1))
    await database.execute(
        "update jobs set status = 'done', next_run_at = null,"
        " finished_at = now() - case when id like 'old-%' then interval '31 days' else interval '29 days' end"
        " where id not like 'pending-%'"
    )
    async with running_producer(site):

        async def only_the_old_are_gone() -> bool:
            kept = await database.fetch("select split_part(id, '-', 1) as kind, count(*) from jobs group by 1")
            assert {row["kind"]: row["count"] for row in kept} == {"new": 10, "pending": 10}
            return True

        await eventually(only_the_old_are_gone)


async def test_a_job_due_now_is_published_without_waiting_for_a_poll(
    site: Site, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producer.lanes.PRODUCER_POLL_SECONDS", 3600.0)
    async with running_consumer(site), running_producer(site):
        for number in range(10):
            await app.send({"id": f"now-{number}", "at": in_seconds(0)})
            await app.hears(number + 1)


async def test_a_job_due_soon_is_published_without_waiting_for_a_poll(
    site: Site, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer sleeps until the next due moment, which its last look ahead has found."""
    monkeypatch.setattr("producer.lanes.PRODUCER_POLL_SECONDS", 3600.0)
    async with running_consumer(site), running_producer(site):
        await app.send({"id": "soon", "at": in_seconds(0.9)})
        await app.hears(1)


async def test_a_job_is_found_by_the_poll_without_a_notification(site: Site, app: Application, database: Any) -> None:
    async with running_producer(site):
        await insert_due(database, 1)
        await app.hears(1)
