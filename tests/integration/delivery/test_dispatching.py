"""Limits of calls, hosts that hang, breakers, leases, shutdown, replicas: no row waits for the server of another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import structlog
from aiohttp import web

from delivery.dispatch.claimer import MAX_ROWS_READ
from shared.postgres.errors import RETRYABLE_ERRORS
from tests.support.application import Application, an_application
from tests.support.builders import a_delivery
from tests.support.delivery_parts import a_claimer, a_queue
from tests.support.delivery_rows import attempts_of, delivery_of, insert_rows, wait_for_deliveries, wait_for_delivery
from tests.support.due_events import a_due, publish_due
from tests.support.eventually import eventually
from tests.support.receiver import Call, Gate, Receiver, a_receiver, answering
from tests.support.services import running_delivery
from tests.support.stores import Site


@asynccontextmanager
async def receivers(number: int) -> AsyncIterator[list[Receiver]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(a_receiver()) for _ in range(number)]


async def test_behind_a_long_queue_of_a_host_without_room_the_others_are_found(site: Site, database: Any) -> None:
    await insert_rows(database, "full:80", MAX_ROWS_READ + 100, due_in=-100)
    await insert_rows(database, "a:80", 2)
    await insert_rows(database, "z:80", 2)
    queue = a_queue(max_calls=5, max_calls_per_host=2)
    with queue.reservation(0.0) as reservation:
        reservation.add([a_delivery(host="full:80")] * 2)
        reservation.commit(0.0)
    queue.start_all(0.0)
    async with a_claimer(site, queue) as claimer:
        first = await claimer.claim_once()
        assert [delivery.host for delivery in first.rows] == ["a:80", "a:80", "z:80"]
        assert await claimer.claim_once() == ([], True), "there is no room left"
        assert queue.start_next("a:80", 0.0)
        queue.end_call("a:80")
        assert [delivery.host for delivery in (await claimer.claim_once()).rows] == ["z:80"]


async def test_a_claim_that_fails_keeps_no_slots(site: Site, database: Any) -> None:
    await database.execute(
        """create function stumble() returns trigger language plpgsql as $$
           begin raise exception 'try again' using errcode = 'serialization_failure'; end $$;
           create trigger stumble before update on deliveries
               for each row when (new.host = 'stumbles:80') execute function stumble()"""
    )
    await insert_rows(database, "long:80", MAX_ROWS_READ + 100, due_in=-100)
    await insert_rows(database, "stumbles:80", 1)
    queue = a_queue(max_calls_per_host=2)
    async with a_claimer(site, queue) as claimer:
        with pytest.raises(RETRYABLE_ERRORS):
            await claimer.claim_once()
    assert (queue.free, queue.room_of("long:80", 0.0)) == (10, 2)
    assert await database.fetchval("select count(*) from deliveries where status = 'PROCESSING'") == 0


async def test_a_host_gets_no_more_than_its_share_of_slots(site: Site, app: Application, database: Any) -> None:
    async def take_a_moment(_: Call) -> web.Response:
        await asyncio.sleep(0.02)
        return web.Response()

    async with a_receiver(take_a_moment) as receiver, running_delivery(site, max_in_flight_per_host=4):
        await publish_due(app, *(a_due(f"j{n}", receiver.url) for n in range(60)))
        await wait_for_deliveries(database, 60)
    assert receiver.most_at_once == 4


async def test_a_long_queue_of_one_host_flows_without_waiting_for_a_poll(
    site: Site, app: Application, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots that are freed while a claim is under way must be seen, though the claim could not count on them."""
    monkeypatch.setattr("delivery.dispatch.dispatcher.CLAIM_POLL_SECONDS", 3600.0)
    async with a_receiver() as receiver, running_delivery(site, max_in_flight_per_host=4):
        await publish_due(app, *(a_due(f"job-{number}", receiver.url) for number in range(300)))
        await wait_for_deliveries(database, 300)


async def test_all_hosts_together_get_no_more_than_all_slots(site: Site, app: Application, database: Any) -> None:
    gate = Gate()
    async with AsyncExitStack() as stack:
        several = [await stack.enter_async_context(a_receiver(gate)) for _ in range(3)]
        await stack.enter_async_context(running_delivery(site, max_in_flight=5, max_in_flight_per_host=4))
        await publish_due(app, *(a_due(f"j{n}", several[n % 3].url) for n in range(30)))

        async def full() -> bool:
            return sum(receiver.at_once for receiver in several) == 5

        await eventually(full)
        claimed = await database.fetchval("select count(*) from deliveries where status = 'PROCESSING'")
        assert claimed == 5, "no row is claimed before there is a slot for it"
        gate.opened.set()
        await wait_for_deliveries(database, 30)


async def test_two_thousand_over_ten_hosts_of_which_one_hangs(site: Site, app: Application, database: Any) -> None:
    """The other nine finish as if it were not there: not one call to it has to end first."""
    settings = {"max_in_flight": 64, "max_in_flight_per_host": 6, "breaker_failures": 1000}
    async with receivers(9) as nine, a_receiver(Gate()) as hanging:
        events = [a_due(f"job-{n}", nine[n % len(nine)].url) for n in range(1800)]
        # Spread among the others, and each of them would hang for far longer than the whole run.
        for n in range(200):
            events.insert(n * 10, a_due(f"hang-{n}", hanging.url, webhook={"timeout_seconds": 120}))
        async with asyncio.TaskGroup() as group:
            for part in range(0, len(events), 50):
                group.create_task(publish_due(app, *events[part : part + 50]))
        async with running_delivery(site, shutdown_grace_seconds=3.5, **settings):
            await wait_for_deliveries(database, 1800, within=60)
            assert await database.fetchval("select count(*) from delivery_attempts") == 1800, "one of its calls ended"
        assert hanging.most_at_once <= 6
        assert len(hanging.calls) <= 6
    assert all(set(receiver.keys.values()) == {1} for receiver in nine)


async def test_a_host_that_keeps_failing_is_left_alone_and_found_again(
    site: Site, app: Application, database: Any
) -> None:
    statuses = {"now": 500}

    async def as_told(_: Call) -> web.Response:
        return web.Response(status=statuses["now"])

    settings = {
        "max_in_flight_per_host": 1,
        "breaker_failures": 3,
        "breaker_first_pause_seconds": 0.3,
        "breaker_longest_pause_seconds": 5.0,
        "retry_base_seconds": 60,
    }
    with structlog.testing.capture_logs() as logs:
        async with a_receiver(as_told) as failing, a_receiver() as healthy, running_delivery(site, **settings):
            await publish_due(app, *(a_due(f"bad-{n}", failing.url, webhook={"max_retries": 20}) for n in range(40)))
            await failing.called(5)  # three that opened it, and two probes

            await publish_due(app, a_due("good", healthy.url))
            await wait_for_delivery(database, "good", "COMPLETED")
            untouched = await database.fetchval("select count(*) from deliveries where status = 'PENDING'")
            assert untouched >= 30, "waiting spends no attempts"
            assert await database.fetchval("select count(*) from delivery_attempts") <= 12

            statuses["now"] = 200
            await eventually(lambda: _logged(logs, "breaker_closed"))
            # The rest is delivered at once; those that failed wait for their own retry, which chance may have put soon.
            await eventually(lambda: _none_untouched(database))
    [opened] = [log for log in logs if log["event"] == "breaker_opened"]
    assert (opened["host"], opened["failures"]) == (failing.host, 3)
    assert len([log for log in logs if log["event"] == "breaker_closed"]) == 1


async def _logged(logs: Any, event: str) -> bool:
    return any(log["event"] == event for log in logs)


async def _none_untouched(database: Any) -> bool:
    return bool(await database.fetchval("select count(*) from deliveries where status = 'PENDING'") == 0)


async def test_a_lease_lost_to_another_worker_records_nothing(site: Site, app: Application, database: Any) -> None:
    gate = Gate()
    with structlog.testing.capture_logs() as logs:
        async with a_receiver(gate) as receiver, running_delivery(site):
            due = a_due("tea", receiver.url)
            await publish_due(app, due)
            await receiver.called(1)
            # What another worker's claim would do, long after this lease had ended.
            await database.execute(
                "update deliveries set version = version + 1, next_attempt_at = now() + interval '1 hour'"
            )
            gate.opened.set()
            await eventually(lambda: _logged(logs, "lease_lost"))
    [lost] = [log for log in logs if log["event"] == "lease_lost"]
    assert lost["idempotency_key"] == due["idempotency_key"]
    row = await delivery_of(database, "tea")
    assert (row["status"], row["version"]) == ("PROCESSING", 3)
    assert await attempts_of(database, "tea") == []


async def test_an_orderly_stop_lets_calls_finish_and_announces_them(site: Site, database: Any) -> None:
    gate = Gate()
    async with an_application(site, listen_to="delivery.#") as app, a_receiver(gate) as receiver:
        async with running_delivery(site, shutdown_grace_seconds=20):
            await publish_due(app, a_due("tea", receiver.url))
            await receiver.called(1)
            asyncio.get_running_loop().call_later(0.5, gate.opened.set)
        assert (await delivery_of(database, "tea"))["status"] == "COMPLETED"
        await app.hears(1)
        assert await database.fetchval("select count(*) from delivery_announcements") == 0


async def test_what_does_not_finish_in_time_is_given_back(site: Site, app: Application, database: Any) -> None:
    async with a_receiver(Gate()) as receiver:
        async with running_delivery(site, shutdown_grace_seconds=3.2):
            await publish_due(app, a_due("tea", receiver.url, webhook={"timeout_seconds": 60}))
            await receiver.called(1)
        row = await delivery_of(database, "tea")
        assert (row["status"], row["retry_count"]) == ("PROCESSING", 0)
        receiver.behaviour = answering(200)
        async with running_delivery(site):
            await wait_for_delivery(database, "tea", "COMPLETED", within=10)
        assert list(receiver.keys.values()) == [2]


async def test_two_replicas_share_the_work_and_nothing_is_done_twice(
    site: Site, app: Application, database: Any
) -> None:
    gate = Gate()
    async with a_receiver(gate) as receiver:
        await publish_due(app, *(a_due(f"j{n}", receiver.url) for n in range(200)))
        limits = {"max_in_flight": 8, "max_in_flight_per_host": 8, "batch_size": 20}
        async with running_delivery(site, **limits), running_delivery(site, **limits):

            async def both_are_full() -> bool:
                return receiver.at_once == 16

            await eventually(both_are_full)
            gate.opened.set()
            await wait_for_deliveries(database, 200)
    retried = await database.fetch(
        "select number, error, status_code from delivery_attempts where status_code is distinct from 200"
    )
    assert not retried
    assert len(receiver.effects) == len(receiver.calls) == 200
    assert receiver.most_at_once == 16


async def test_a_database_that_drops_every_connection_delays_and_loses_nothing(
    site: Site, app: Application, database: Any
) -> None:
    gate = Gate()
    async with a_receiver(gate) as receiver, running_delivery(site):
        await publish_due(app, *(a_due(f"j{n}", receiver.url) for n in range(10)))
        await receiver.called(10)
        await database.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'duebell-delivery'"
        )
        gate.opened.set()
        await wait_for_deliveries(database, 10)
    assert set(receiver.keys.values()) == {1}
