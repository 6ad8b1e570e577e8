"""Listening with the installed client: acknowledged after the handler, once per occurrence, whatever dies meanwhile."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import aio_pika
import pytest

from tests.support.application import Application, an_application
from tests.support.client_program import Installed, Program
from tests.support.eventually import eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site, Stores

LISTENER = Path(__file__).parent / "scripts" / "listener.py"


@pytest.fixture
async def queue(site: Site) -> AsyncIterator[str]:
    name = f"my-app.{uuid4().hex[:8]}"
    yield name
    async with an_application(site, listen_to=None) as app:
        for made in (name, f"{name}.failed"):
            await app.channel.queue_delete(made)
        await app.channel.exchange_delete(f"{name}.failed")


@pytest.fixture
def listening(installed: Installed, queue: str) -> Installed:
    return installed.given(QUEUE=queue)


@pytest.fixture
def listening_with_postgres(listening: Installed, python_with_asyncpg: Path, site: Site) -> Installed:
    return replace(listening, python=python_with_asyncpg).given(DATABASE_URL=site.database_url)


async def rings(app: Application, job_id: str, payload: object = None, topic: str = "t", key: str = "") -> None:
    """An event as the producer writes it; the same id is the same occurrence."""
    due = {
        "id": job_id,
        "topic": topic,
        "sequence": 1,
        "due_at": "2026-07-10T09:00:00Z",
        "fired_at": "2026-07-10T09:00:00.004Z",
        "idempotency_key": key or f"event-{job_id}",
        "payload": payload,
        "a_field_of_the_future": 1,
    }
    await app.events.publish(aio_pika.Message(json.dumps(due).encode()), f"due.event.{topic}")


async def holds(app: Application, queue: str, number: int, within: float = 20.0) -> None:
    async def look() -> bool:
        count = await app.count(queue)
        assert count == number, f"{count} in {queue}"
        return True

    await eventually(look, within)


def begun(program: Program, job_id: str) -> int:
    return sum(line.startswith(f"begin {job_id} ") for line in program.lines)


async def test_what_rings_is_handled_once_and_acknowledged(
    listening: Installed, queue: str, site: Site, app: Application
) -> None:
    async with listening.running(LISTENER) as program, running_consumer(site), running_producer(site):
        await program.says("listening")
        await app.request({"id": "real", "rrule": "FREQ=SECONDLY;COUNT=3"})
        await rings(app, "copied")
        await rings(app, "copied")
        await rings(app, "hooked", topic="with.webhook")
        await program.says("end copied", "end hooked")

        async def three_times() -> bool:
            return begun(program, "real") == 3

        await eventually(three_times)
        await holds(app, queue, 0)
    assert begun(program, "copied") == 1


async def test_only_the_topics_asked_for_are_heard(listening: Installed, app: Application) -> None:
    async with listening.given(TOPIC="invoices.#").running(LISTENER) as program:
        await program.says("listening")
        await rings(app, "other", topic="salaries")
        await rings(app, "below", topic="invoices.late.very")
        await rings(app, "itself", topic="invoices")
        await program.says("end below", "end itself")
    assert begun(program, "other") == 0


async def test_a_handler_that_fails_for_a_while_is_tried_again(
    listening: Installed, queue: str, app: Application
) -> None:
    async with listening.running(LISTENER) as program:
        await program.says("listening")
        await rings(app, "shaky", {"raise": 2})
        await program.says("end shaky")
        await holds(app, f"{queue}.failed", 0)
    assert begun(program, "shaky") == 3


async def test_an_event_that_cannot_be_handled_is_dead_lettered_and_stops_no_other(
    listening: Installed, queue: str, app: Application
) -> None:
    async with listening.given(PREFETCH="1").running(LISTENER) as program:
        await program.says("listening")
        await rings(app, "hopeless", {"raise": 99})
        await app.events.publish(aio_pika.Message(b"not json"), "due.event.t")
        await rings(app, "fine")
        await program.says("end fine")
        await holds(app, f"{queue}.failed", 2)
    assert begun(program, "hopeless") == 3
    parked = await (await app.channel.get_queue(f"{queue}.failed")).get(no_ack=True)
    assert parked is not None
    assert json.loads(parked.body)["id"] == "hopeless", "its body is untouched"


async def test_a_queue_of_failed_events_that_an_older_client_declared_is_used_as_it_is(
    listening: Installed, queue: str, app: Application
) -> None:
    await app.channel.declare_queue(f"{queue}.failed", durable=True, arguments={"x-queue-type": "quorum"})
    async with listening.running(LISTENER) as program:
        await program.says("listening")
        await rings(app, "hopeless", {"raise": 99})
        await holds(app, f"{queue}.failed", 1)


async def test_an_event_whose_process_dies_in_mid_work_comes_again(
    listening: Installed, queue: str, app: Application
) -> None:
    async with listening.running(LISTENER) as first:
        await first.says("listening")
        await rings(app, "long", {"hang": 60})
        await first.says("begin long")
        first.kill()
    async with listening.running(LISTENER) as second:
        await second.says("begin long")


async def test_a_stop_lets_handlers_finish_and_gives_the_rest_back(
    listening: Installed, queue: str, app: Application
) -> None:
    async with listening.given(PREFETCH="2").running(LISTENER) as program:
        await program.says("listening")
        for number in range(5):
            await rings(app, f"job-{number}", {"hang": 2})
        await program.says("begin job-0", "begin job-1")
        program.interrupt()
        await program.says("stopped")
        assert program.process.returncode in {0, None}
        await holds(app, queue, 3)
    assert "end job-0" in program.output
    assert "end job-1" in program.output
    assert begun(program, "job-2") == 0


@pytest.mark.own_stores
async def test_listening_goes_on_after_a_restart_of_the_broker_and_handles_nothing_twice(
    listening: Installed, queue: str, stores: Stores, site: Site
) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    async with listening.running(LISTENER) as program:
        await program.says("listening")
        async with an_application(site, listen_to=None) as app:
            await rings(app, "before")
            await rings(app, "during", {"hang": 3})
            await program.says("end before", "begin during")
        await asyncio.to_thread(stores.rabbitmq.sync_queue_register)
        await asyncio.to_thread(stores.rabbitmq.restart)
        async with an_application(site, listen_to=None) as app:
            await rings(app, "after")
            await program.says("end during", "end after", within=60)
            await holds(app, queue, 0)
    assert begun(program, "during") == 1, "its copy waited for the first, and was skipped"


async def test_a_queue_that_is_deleted_is_made_anew(listening: Installed, queue: str, app: Application) -> None:
    async with listening.running(LISTENER) as program:
        await program.says("listening")
        await app.channel.queue_delete(queue)
        await program.says("was interrupted")

        async def heard() -> bool:
            await rings(app, "after")
            return "end after" in program.output

        await eventually(heard)


async def test_a_queue_that_this_user_may_not_declare_is_not_allowed(listening: Installed, stores: Stores) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker, which has no roles")
    async with listening.given(QUEUE="another-users").running(LISTENER) as program:
        await program.says("NotAllowed")


async def test_with_postgres_a_key_and_its_effect_are_committed_together(
    listening_with_postgres: Installed, queue: str, app: Application, database: Any
) -> None:
    await database.execute("create table effects (what text)")
    effect = {"sql": "insert into effects values ('sent')"}
    here = listening_with_postgres
    async with here.running(LISTENER) as first, here.running(LISTENER) as second:
        await first.says("listening")
        await second.says("listening")
        # Both processes get copies; one begins, the other waits for it.
        for _ in range(4):
            await rings(app, "once", {**effect, "hang": 1})
        await rings(app, "broken", {"sql": "insert into nowhere values (1)"})
        await holds(app, f"{queue}.failed", 1)
        await holds(app, queue, 0)

        async def committed() -> bool:
            return bool(await database.fetchval("select count(*) from duebell_seen") == 1)

        await eventually(committed)
    assert begun(first, "once") + begun(second, "once") == 1
    assert await database.fetchval("select count(*) from effects") == 1
    assert await database.fetchval("select key from duebell_seen") == "event-once"


async def test_keys_outlive_the_process_in_postgres(
    listening_with_postgres: Installed, app: Application, database: Any
) -> None:
    for attempt in range(2):
        async with listening_with_postgres.running(LISTENER) as program:
            await program.says("listening")
            await rings(app, "once")
            await rings(app, f"marker-{attempt}")
            # Handlers run beside each other: the end of one does not tell that the other has committed.
            kept = {"event-once", *(f"event-marker-{number}" for number in range(attempt + 1))}

            async def committed(keys: set[str] = kept) -> bool:
                return {row["key"] for row in await database.fetch("select key from duebell_seen")} == keys

            await eventually(committed)
            await program.says(f"end marker-{attempt}")
    assert begun(program, "once") == 0
