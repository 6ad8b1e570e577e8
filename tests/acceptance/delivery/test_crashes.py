"""kill -9 in the windows that matter, each made to stand still first: every key arrives, and a receiver that keeps the
first of each key sees exactly one effect.
"""

import asyncio
import random
from pathlib import Path
from typing import Any

from aiohttp import web
from pamqp.common import FieldTable

from tests.acceptance.delivery.processes import delivery_process
from tests.support.application import Application, an_application
from tests.support.delivery_rows import attempts_of, delivery_of, wait_for_deliveries, wait_for_delivery
from tests.support.due_events import a_due, publish_due
from tests.support.eventually import eventually
from tests.support.receiver import Call, Gate, a_receiver, answering
from tests.support.services import ServiceProcess
from tests.support.stores import Site, put_topology

# A transaction that completes a delivery waits here for as long as the test holds the lock.
STAND_STILL_BEFORE_THE_RECORD = """
create function stand_still() returns trigger language plpgsql as $$
begin perform pg_advisory_xact_lock(42); return new; end $$;
create trigger stand_still before update on deliveries
    for each row when (new.status = 'COMPLETED') execute function stand_still()
"""
WAITING_FOR_THE_LOCK = "select pid from pg_stat_activity where wait_event = 'advisory' and datname = current_database()"
ONE_SECOND = {"timeout_seconds": 1}


async def _said(service: ServiceProcess, event: str) -> list[dict[str, Any]]:
    return service.said(event)


async def test_killed_between_the_answer_and_its_record(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    await database.execute(STAND_STILL_BEFORE_THE_RECORD)
    async with a_receiver() as receiver:
        await database.execute("select pg_advisory_lock(42)")
        with delivery_process(site, tmp_path) as service:
            await publish_due(app, a_due("tea", receiver.url, webhook=ONE_SECOND))
            recording = await eventually(lambda: database.fetch(WAITING_FOR_THE_LOCK))
            service.kill()
            # Postgres has not noticed, and would go on with the statement.
            await database.execute("select pg_terminate_backend($1)", recording[0]["pid"])
        await database.execute("select pg_advisory_unlock(42)")
        assert (await delivery_of(database, "tea"))["status"] == "PROCESSING"
        assert len(receiver.calls) == 1, "the receiver has the call, and no process knows it"

        with delivery_process(site, tmp_path):
            row = await wait_for_delivery(database, "tea", "COMPLETED")
        assert row["retry_count"] == 0
        assert len(await attempts_of(database, "tea")) == 1
        assert (len(receiver.calls), len(receiver.effects)) == (2, 1)


async def test_killed_in_the_middle_of_a_call(site: Site, app: Application, database: Any, tmp_path: Path) -> None:
    async with a_receiver(Gate()) as receiver:
        with delivery_process(site, tmp_path) as service:
            await publish_due(app, a_due("tea", receiver.url, webhook=ONE_SECOND))
            await receiver.called(1)
            service.kill()
        receiver.behaviour = answering(200)
        with delivery_process(site, tmp_path):
            await wait_for_delivery(database, "tea", "COMPLETED")
        assert (len(receiver.calls), len(receiver.effects)) == (2, 1)


async def test_killed_between_the_commit_of_the_intake_and_its_acknowledgement(
    site: Site, database: Any, tmp_path: Path
) -> None:
    """The batch has one event that must be parked before anything is acknowledged, and the parking is full."""
    async with an_application(site, listen_to=None) as app, a_receiver() as receiver:
        with delivery_process(site, tmp_path, BATCH_WAIT_SECONDS="0.5") as service:
            await eventually(lambda: _said(service, "consuming"))
            await app.channel.queue_delete(site.names.parked)
            full: FieldTable = {"x-max-length": 0, "x-overflow": "reject-publish"}
            parking = await app.channel.declare_queue(site.names.parked, durable=True, arguments=full)
            await parking.bind(site.names.parking)
            due = a_due("tea", receiver.url)
            await publish_due(app, due, b"{not an event")
            await wait_for_delivery(database, "tea", "COMPLETED")
            await eventually(lambda: _said(service, "batch_waits"))
            service.kill()

        await app.channel.queue_delete(site.names.parked)
        await put_topology(site)
        with delivery_process(site, tmp_path) as service:
            [parked] = await app.parked(1)
            assert parked.body == b"{not an event"
            [line] = await eventually(lambda: _said(service, "duplicate_dropped"))
            assert line["idempotency_key"] == due["idempotency_key"]
        assert await database.fetchval("select count(*) from deliveries") == 1
        assert len(receiver.calls) == 1


async def test_killed_again_and_again_under_load(site: Site, database: Any, tmp_path: Path) -> None:
    chance = random.Random(4)

    async def take_a_moment(_: Call) -> web.Response:
        await asyncio.sleep(chance.uniform(0, 0.02))
        return web.Response(status=200 if chance.random() < 0.9 else 503)

    async with an_application(site, listen_to="delivery.#") as app, a_receiver(take_a_moment) as receiver:
        events = [a_due(f"j{n}", receiver.url, webhook={**ONE_SECOND, "max_retries": 20}) for n in range(250)]
        await publish_due(app, *events)
        for _ in range(3):
            before = len(receiver.calls)
            with delivery_process(site, tmp_path, MAX_IN_FLIGHT="8", BATCH_SIZE="40") as service:
                await receiver.called(before + chance.randint(10, 40))
                service.kill()
        with delivery_process(site, tmp_path):
            await wait_for_deliveries(database, 250)

            async def all_heard() -> bool:
                keys = {event.content["idempotency_key"] for event in app.heard}
                assert len(keys) == 250, f"{len(keys)} of 250 outcomes heard"
                return True

            await eventually(all_heard)
        assert set(receiver.effects) == {event["idempotency_key"] for event in events}
        assert {event.routing_key for event in app.heard} == {"delivery.completed.hooks"}


async def test_a_worker_that_slept_through_its_lease_drops_its_result(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    gate = Gate(status=404)
    async with a_receiver(gate) as receiver:
        with delivery_process(site, tmp_path) as sleeper:
            due = a_due("tea", receiver.url, webhook=ONE_SECOND)
            await publish_due(app, due)
            await receiver.called(1)
            sleeper.freeze()
            receiver.behaviour = answering(200)
            with delivery_process(site, tmp_path):
                row = await wait_for_delivery(database, "tea", "COMPLETED")
            gate.opened.set()
            sleeper.thaw()
            [line] = await eventually(lambda: _said(sleeper, "lease_lost"))
            assert line["idempotency_key"] == due["idempotency_key"]
            assert sleeper.terminate() == 0
        assert await delivery_of(database, "tea") == row
        assert len(receiver.effects) == 1
