"""Real processes that die, freeze and lose their stores: nothing is lost, and everything heals by itself."""

import asyncio
import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from aio_pika.abc import AbstractIncomingMessage
from aiormq.exceptions import PublishError
from structlog.testing import capture_logs

from shared.amqp.connection import Broker
from shared.amqp.message import OutgoingMessage
from shared.amqp.publisher import Publisher
from shared.runtime.addresses import parse_address
from tests.support.application import Application, an_application
from tests.support.blocked_writes import a_write_is_blocked, block_writes
from tests.support.builders import a_request, in_seconds
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import insert_due, read_job, wait_for_status, wait_until_none_pending
from tests.support.services import service_process
from tests.support.stores import Site, Stores


async def test_a_producer_killed_between_publish_and_commit_rings_twice_and_loses_nothing(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    await insert_due(database, 20)
    async with block_writes(site, "before update") as lock_holder:
        with service_process("producer", site, tmp_path) as producer:
            await app.hears(20)
            await eventually(lambda: a_write_is_blocked(lock_holder))
            producer.kill()
    assert await database.fetchval("select count(*) from jobs where status = 'pending'") == 20, "nothing was settled"
    with service_process("producer", site, tmp_path):
        await wait_until_none_pending(database)
        await app.hears(40)
    keys = Counter(event.content["idempotency_key"] for event in app.heard)
    assert len(keys) == 20
    assert set(keys.values()) == {2}, "the copies carry the same key"
    assert all(event.raw.message_id == event.content["idempotency_key"] for event in app.heard), "and message_id"
    assert {event.content["sequence"] for event in app.heard} == {1}


async def test_a_consumer_killed_before_its_commit_loses_no_command(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    async with block_writes(site, "before insert") as lock_holder:
        with service_process("consumer", site, tmp_path) as consumer:
            for number in range(50):
                await app.send(a_request(id=f"job-{number}"))
            await eventually(lambda: a_write_is_blocked(lock_holder))
            consumer.kill()
    assert await database.fetchval("select count(*) from jobs") == 0
    with service_process("consumer", site, tmp_path):

        async def all_stored() -> bool:
            return bool(await database.fetchval("select count(*) from jobs") == 50)

        await eventually(all_stored)


@pytest.mark.parametrize("service", ["consumer", "producer"])
async def test_sigterm_finishes_what_is_in_flight_and_exits_cleanly(
    site: Site, app: Application, database: Any, tmp_path: Path, service: str
) -> None:
    """Stopped in the middle of the work: what it had begun is finished once, the rest is there for the next one."""
    if service == "producer":
        await insert_due(database, 5_000)
    else:
        await asyncio.gather(*(app.send(a_request(id=f"job-{n}", at=in_seconds(-1))) for n in range(3_000)))
    with service_process(service, site, tmp_path, BATCH_SIZE="50") as first:

        async def under_way() -> bool:
            done = "select count(*) from jobs" + (" where status = 'done'" if service == "producer" else "")
            return bool(await database.fetchval(done) > 100)

        await eventually(under_way)
        assert first.terminate() == 0
        assert first.said("stopped")
        assert not first.said("abandoned")
    with (
        service_process("consumer", site, tmp_path),
        service_process("producer", site, tmp_path),
    ):
        expected = 5_000 if service == "producer" else 3_000
        await app.hears(expected, within=60)
        await wait_until_none_pending(database)
    rung = Counter(event.content["id"] for event in app.heard)
    assert len(rung) == expected
    assert set(rung.values()) == {1}, "an orderly stop makes no duplicates"


@pytest.mark.own_stores
async def test_a_restart_of_the_broker_in_mid_batch_loses_nothing(
    stores: Stores, site: Site, database: Any, tmp_path: Path
) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    kept = f"{site.prefix}kept"
    async with an_application(site, listen_to=None) as app:
        await app.binds(kept, "due.#", **{"x-queue-type": "quorum"})
    await asyncio.to_thread(stores.rabbitmq.sync_queue_register)
    with (
        service_process("consumer", site, tmp_path) as consumer,
        service_process("producer", site, tmp_path) as producer,
    ):
        await insert_due(database, 4_000)

        async def under_way() -> bool:
            return bool(await database.fetchval("select count(*) from jobs where status = 'done'") > 500)

        await eventually(under_way)
        await asyncio.to_thread(stores.rabbitmq.kill)
        await asyncio.to_thread(stores.rabbitmq.start)
        await wait_until_none_pending(database, within=60)
        async with an_application(site, listen_to=None) as app:
            assert (await app.request(a_request(id="after")))["outcome"] == "accepted", "the consumer is back too"
            ids = await _drain(app, kept, wanted=4_000)
            await app.channel.queue_delete(kept)
        assert ids == {f"job-{number:06}" for number in range(1, 4_001)}
        assert consumer.is_running
        assert producer.is_running
        assert "Traceback" not in consumer.log.read_text() + producer.log.read_text()


async def _drain(app: Application, queue_name: str, wanted: int) -> set[str]:
    """Take messages from the queue until `wanted` different jobs are among them and the queue is empty."""
    queue = await app.channel.get_queue(queue_name)
    ids: set[str] = set()

    async def take(message: AbstractIncomingMessage) -> None:
        ids.add(json.loads(message.body)["id"])

    await queue.consume(take, no_ack=True)

    async def all_taken() -> bool:
        assert len(ids) >= wanted, f"{len(ids)} of {wanted} jobs so far"
        return await app.count(queue_name) == 0

    await eventually(all_taken, within=60)
    return ids


@pytest.mark.own_stores
async def test_a_restart_of_postgres_in_mid_batch_loses_nothing(
    stores: Stores, site: Site, app: Application, tmp_path: Path
) -> None:
    if stores.postgres is None:
        pytest.skip("the tests did not start Postgres")
    with (
        service_process("consumer", site, tmp_path) as consumer,
        service_process("producer", site, tmp_path) as producer,
    ):
        sender = asyncio.gather(*(app.send(a_request(id=f"job-{n}", at=in_seconds(-1))) for n in range(3_000)))
        await app.hears(200)
        await asyncio.to_thread(stores.postgres.restart)
        await sender

        async def all_rung() -> bool:
            assert len({event.content["id"] for event in app.heard}) == 3_000
            return True

        await eventually(all_rung, within=60)
        database = await asyncpg.connect(site.database_url, timeout=PATIENCE)
        await wait_until_none_pending(database)
        assert await database.fetchval("select count(*) from jobs where status = 'done'") == 3_000
        await database.close(timeout=5)
        assert consumer.is_running
        assert producer.is_running
        assert "Traceback" not in consumer.log.read_text() + producer.log.read_text()


@pytest.mark.own_stores
async def test_a_host_that_blocks_publishers_for_long_is_left_for_the_next(stores: Stores, site: Site) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    here = parse_address(site.amqp_url).hosts[0]
    url = site.amqp_url.replace(here, f"{here},{here}")
    with capture_logs() as logs:
        async with Broker(url, name="test", names=site.names, max_blocked_seconds=0.2).connected() as broker:
            await asyncio.to_thread(stores.rabbitmq.ctl, "set_vm_memory_high_watermark", "0.00001")
            try:
                async with Publisher(broker) as publisher:
                    # The broker tells a connection that it is blocked when it publishes.
                    await publisher.publish([OutgoingMessage(site.names.events, "due.event.any", b"")], timeout=1.0)

                async def is_left() -> bool:
                    problems = [line["problem"] for line in logs if line["event"] == "broker_not_ready"]
                    return any("it blocks publishers" in problem for problem in problems)

                await eventually(is_left)
            finally:
                await asyncio.to_thread(stores.rabbitmq.ctl, "set_vm_memory_high_watermark", "0.4")
            await broker.wait_until_publishable()


@pytest.mark.own_stores
async def test_while_the_broker_blocks_publishers_no_row_is_held(
    stores: Stores, site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    """A memory alarm: nothing can be published, so nothing is claimed, and a cancel goes through at once."""
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    with (
        service_process("consumer", site, tmp_path),
        service_process("producer", site, tmp_path, PUBLISH_TIMEOUT_SECONDS="1"),
    ):
        await app.request(a_request(id="doomed", at=in_seconds(3600)))
        await asyncio.to_thread(stores.rabbitmq.ctl, "set_vm_memory_high_watermark", "0.00001")
        try:
            await insert_due(database, 100)

            async def given_up() -> bool:
                held = await database.fetchval(
                    "select count(*) from pg_stat_activity where application_name = 'duebell-producer'"
                    " and datname = current_database() and state like 'idle in transaction%'"
                )
                return bool(held == 0)

            await eventually(given_up)
            assert await database.fetchval("select count(*) from jobs where status = 'done'") == 0
        finally:
            await asyncio.to_thread(stores.rabbitmq.ctl, "set_vm_memory_high_watermark", "0.4")
        await app.hears(100, within=40)
        assert (await app.cancel("doomed"))["outcome"] == "cancelled"
        assert {event.content["id"] for event in app.heard} == {f"job-{number:06}" for number in range(1, 101)}


@pytest.mark.own_stores
async def test_a_frozen_broker_does_not_keep_a_cancel_waiting_for_long(
    stores: Stores, site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    """The producer holds its rows while it publishes, but no longer than its deadline."""
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    with service_process("producer", site, tmp_path, PUBLISH_TIMEOUT_SECONDS="1") as producer:
        await insert_due(database, 1, prefix="first-")
        await app.hears(1)
        stores.rabbitmq.pause()
        try:
            await insert_due(database, 200)

            async def left_alone() -> str | None:
                # A signal takes a moment to stop every thread: some may have been confirmed before.
                assert producer.said("not_published")
                left: str | None = await database.fetchval("select min(id) from jobs where status = 'pending'")
                return left

            job_id = await eventually(left_alone)
            line = producer.said("not_published")[0]
            assert (line["routing_key"], line["id"][:4]) == ("due.event.default", "job-")
            # Whatever the producer tries from now on, it lets go within its deadline: the row can be had.
            await database.execute("set lock_timeout = '15s'")
            await database.execute(
                "update jobs set status = 'cancelled', next_run_at = null, finished_at = now() where id = $1", job_id
            )
        finally:
            stores.rabbitmq.resume()
        await wait_until_none_pending(database, within=60)
        assert (await read_job(database, job_id or ""))["status"] == "cancelled"


@pytest.mark.own_stores
async def test_a_broker_frozen_beyond_its_heartbeat_is_left_and_found_again(
    stores: Stores, site: Site, database: Any, tmp_path: Path
) -> None:
    """Connections that stall for so long are given up, in whatever state they were; every lane must live on."""
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    impatient = {**site.environment, "AMQP_URL": f"{site.amqp_url}?heartbeat=1", "PUBLISH_TIMEOUT_SECONDS": "1"}
    with (
        service_process("consumer", impatient, tmp_path) as consumer,
        service_process("producer", impatient, tmp_path) as producer,
    ):
        await insert_due(database, 1, prefix="first-")
        await wait_until_none_pending(database)
        stores.rabbitmq.pause()
        try:
            await insert_due(database, 20, prefix="fresh-")
            await insert_due(database, 20, prefix="old-", late=timedelta(hours=1))

            async def given_up() -> bool:
                return all(service.said("broker_not_ready") for service in (consumer, producer))

            await eventually(given_up, within=60)
        finally:
            stores.rabbitmq.resume()
        async with an_application(site, listen_to=None) as app:
            await wait_until_none_pending(database, within=60)
            assert (await app.request(a_request(id="after", at=in_seconds(0))))["outcome"] == "accepted"
        await insert_due(database, 5, prefix="old-again-", late=timedelta(hours=1))
        await wait_until_none_pending(database, within=60)
        assert consumer.is_running
        assert producer.is_running


@pytest.mark.own_stores
async def test_a_consumer_told_to_stop_while_the_database_is_away_gives_its_messages_back(
    stores: Stores, site: Site, app: Application, tmp_path: Path
) -> None:
    if stores.postgres is None:
        pytest.skip("the tests did not start Postgres")
    with service_process("consumer", site.environment, tmp_path) as consumer:
        await app.request(a_request(id="before"))
        await asyncio.to_thread(stores.postgres.stop)
        try:
            await app.send(a_request(id="waiting"))

            async def waits() -> bool:
                return bool(consumer.said("batch_waits"))

            await eventually(waits)
            assert await asyncio.to_thread(consumer.terminate) == 0
            assert not consumer.said("abandoned")
        finally:
            await asyncio.to_thread(stores.postgres.start)

    async def back_in_the_inbox() -> bool:
        return await app.count(site.names.inbox) == 1

    await eventually(back_in_the_inbox)


async def test_a_deleted_inbox_comes_back_with_its_consumer(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    """If its user may declare it."""
    with service_process("consumer", site.environment, tmp_path):
        await app.request(a_request(id="before"))
        await app.channel.queue_delete(site.names.inbox)

        async def there_again() -> bool:
            try:
                await app.send(a_request(id="after"))
            except PublishError:  # returned: the queue is not there yet
                return False
            return True

        await eventually(there_again)
        await wait_for_status(database, "after", "pending")
