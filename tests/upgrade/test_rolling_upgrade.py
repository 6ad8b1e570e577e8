"""From 0.1.0 to this release and back, under load: services of both releases run side by side on one database and one
broker. No job is lost, none is published early, and each ends as it must.
"""

import asyncio
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aio_pika
import aiormq
import asyncpg
import pytest
from aiohttp import web

from shared.amqp.topology import declare_delay_exchange, delete_delay_exchange
from shared.contract.fields import parse_date_time
from shared.postgres.migrate import newest_version
from stack.ports import free_port
from stack.services import SERVICES
from tests.documents.blocks import blocks_of
from tests.support.application import Application, an_application
from tests.support.builders import in_seconds
from tests.support.delivery_rows import wait_for_delivery
from tests.support.eventually import PATIENCE, eventually
from tests.support.health import is_ready
from tests.support.job_rows import wait_for_status
from tests.support.operator_terminal import operator_terminal
from tests.support.receiver import Call, Receiver, a_receiver
from tests.support.services import ROOT, ServiceProcess, service_process_of
from tests.support.stores import Site, Stores, new_site
from tests.upgrade.load import LATER, STEADY, TOPIC, Load, a_load
from tests.upgrade.release import NEWEST_MIGRATION, run_step, step, unpack

[PREPARE] = [block.text for block in blocks_of("docs/operations/upgrading.md") if block.language == "sh"]
# A webhook may have twenty retries: with this pause they last for minutes, as an upgrade may on a busy machine.
SETTINGS = {"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8", "RETRY_BASE_SECONDS": "0.2", "RETRY_CAP_SECONDS": "12"}
# It refuses passive declarations to users without rights on what they look for.
FIRST_BROKER_WITHOUT_OLD_SERVICES = (4, 2, 6)
TABLE_IN_USE = "a table is in use; trying again"


@dataclass(slots=True)
class Replicas:
    """One replica of each service, of one release."""

    code: Path
    site: Site
    logs: Path
    stack: ExitStack
    running: dict[str, ServiceProcess] = field(default_factory=dict)

    async def start(self, *services: str) -> None:
        ports = {service: free_port() for service in services}
        for service, port in ports.items():
            settings = {"METRICS_PORT": str(port), **SETTINGS}
            process = service_process_of(self.code, service, self.site, self.logs, settings)
            self.running[service] = self.stack.enter_context(process)

        async def all_ready() -> bool:
            return all([await is_ready(port) for port in ports.values()])

        await eventually(all_ready)

    async def stop(self) -> None:
        """Stop them as an orchestrator does: each ends by itself, with status 0."""
        for process in self.running.values():
            assert await asyncio.to_thread(process.terminate) == 0
        self.running.clear()


@dataclass(slots=True)
class Later:
    """A behaviour: calls of one path fail until it is opened."""

    is_open: bool = False

    async def __call__(self, call: Call) -> web.Response:
        return web.Response(status=503 if call.path == "/later" and not self.is_open else 200)


async def test_a_rolling_upgrade_from_0_1_0_and_back_loses_nothing(stores: Stores, tmp_path: Path) -> None:
    code = unpack(tmp_path / "0.1.0")
    logs = tmp_path / "logs"
    logs.mkdir()
    later = Later()
    async with new_site(stores, template="template0") as site, a_receiver(later) as receiver:
        if not site.own:
            pytest.skip("the tests did not start the stores, which have no roles")
        if await _broker_version(site) >= FIRST_BROKER_WITHOUT_OLD_SERVICES:
            pytest.skip("services of 0.1.0 with users of their own do not get ready on this broker")
        await run_step("shared.migrate", site, code)
        await run_step("shared.topology", site, code)
        database = await asyncpg.connect(site.database_url, timeout=PATIENCE)
        try:
            with ExitStack() as stack:
                old, new = (Replicas(release, site, logs, stack) for release in (code, ROOT))
                async with an_application(site, f"due.*.{TOPIC}", declare=False) as app:
                    await old.start(*SERVICES)
                    async with a_load(app, receiver) as load:
                        await _make_rows(app, database, load)
                        await _upgrade(old, new, database, load)
                        await _use_what_the_old_release_left(app, database, later)
                        await _go_back(old, new, database, load)
                    await _judge(database, load)
        finally:
            await database.close(timeout=5)


async def _make_rows(app: Application, database: Any, load: Load) -> None:
    """Rows of each kind, as 0.1.0 writes them."""
    assert await _newest_migration(database) == NEWEST_MIGRATION
    for job in ("waiting", "paused", "cancelled"):
        await app.request({"id": job, "at": in_seconds(LATER), "topic": TOPIC})
    await app.pause("paused")
    await app.cancel("cancelled")
    await app.cancel("cancelled-first")
    await app.trigger("waiting", "one")
    await app.request({"id": "done", "at": in_seconds(0), "topic": TOPIC})
    await _request_failing_webhook(app, database, load.receiver, "hook-old")
    await wait_for_status(database, "done", "done")
    await load.goes_on()


async def _request_failing_webhook(app: Application, database: Any, receiver: Receiver, job: str) -> None:
    url = f"http://{receiver.host}/later"
    await app.request({"id": job, "at": in_seconds(0), "topic": TOPIC, "webhook": {"url": url, "max_retries": 20}})
    await wait_for_delivery(database, job, "PROCESSING")


async def _upgrade(old: Replicas, new: Replicas, database: Any, load: Load) -> None:
    load.phase = "migrating"
    await _migrate_while_a_table_is_in_use(new, load)
    assert await _newest_migration(database) == newest_version()
    await asyncio.to_thread(_run_the_page, new.site, new.logs / "checkout")
    await load.app.request({"id": "unheard", "at": in_seconds(0), "topic": "unheard"})

    async def is_refused() -> bool:
        return bool(await database.fetchval("select refusals > 0 from jobs where id = 'unheard'"))

    await eventually(is_refused)  # 0.1.0 takes an event without a queue for refused, and tries again

    load.phase = "mixed"
    await new.start("producer")
    await new.start("consumer")
    await new.start("delivery")
    await load.goes_on()
    await old.stop()  # an old replica that restarts finds a schema that is newer than its own
    await old.start(*SERVICES)
    await load.goes_on()
    await eventually(lambda: _both_take_part(database, load))
    await _delay_a_message(load.app, new.site)
    await _old_migrate_takes_rights_away(old, new, load)

    load.phase = "new"
    await old.stop()
    load.phase = "new-alone"
    await load.goes_on()


async def _migrate_while_a_table_is_in_use(new: Replicas, load: Load) -> None:
    """A transaction that holds a row keeps the migration from its lock, and the migration holds no one else up."""
    holder = await asyncpg.connect(new.site.database_url, timeout=PATIENCE)
    try:
        async with step("shared.migrate", new.site, ROOT) as migration:
            async with holder.transaction():
                await holder.execute("select 1 from jobs where id = 'waiting' for update")
                assert TABLE_IN_USE in await migration.next_line()
                await load.goes_on()
            assert "applied 0006_lives.sql" in await migration.ends()
    finally:
        await holder.close(timeout=5)


def _run_the_page(site: Site, directory: Path) -> None:
    """Run the commands of docs/operations/upgrading.md. The second migration of this upgrade has nothing left to do."""
    urls = {service: site.own[service]["DATABASE_URL"] for service in (*SERVICES, "reader")}
    passwords = {f"{service.upper()}_PASSWORD": urlsplit(url).password or "" for service, url in urls.items()}
    with operator_terminal(directory, {**site.environment, **passwords}) as terminal:
        terminal.run(PREPARE)
        terminal.shows("exchanges and queues are declared")


async def _both_take_part(database: Any, load: Load) -> bool:
    """Tell whether services of both releases handled jobs of this phase: only the new ones write a history."""
    for what in ("accepted", "fired", "delivered"):
        jobs = load.of(load.phase) & load.called
        query = "select count(distinct job_id) from history where what = $1 and job_id = any($2::text[])"
        told = await database.fetchval(query, what, list(jobs))
        assert 0 < told < len(jobs), f"{what}: {told} of {len(jobs)}"
    return True


async def _old_migrate_takes_rights_away(old: Replicas, new: Replicas, load: Load) -> None:
    """The old release's migrate takes the new services' rights away: they wait, and go on after the new one's."""
    await run_step("shared.migrate", old.site, old.code)
    consumer = new.running["consumer"]

    async def waits() -> bool:
        return any("permission denied" in line["error"] for line in consumer.said("batch_waits"))

    await eventually(waits)
    await run_step("shared.migrate", new.site, ROOT)
    await load.goes_on()


async def _use_what_the_old_release_left(app: Application, database: Any, later: Later) -> None:
    """Ids of jobs that ended under 0.1.0 are used again, and its paused job goes on."""
    await wait_for_status(database, "unheard", "done")
    assert await _told(database, "unheard") == ["unrouted"]
    for job in ("done", "cancelled", "cancelled-first"):
        again = {"id": job, "at": in_seconds(0), "topic": TOPIC}
        assert (await app.request(again))["outcome"] == "duplicate"
        assert (await app.request({**again, "revision": 2}))["outcome"] == "accepted"
        await wait_for_status(database, job, "done")
        assert await _told(database, job) == ["duplicate", "accepted", "fired"]
    assert (await app.resume("paused"))["outcome"] == "resumed"
    assert (await app.query("paused"))["status"] == "pending"
    assert (await app.trigger("waiting", "one"))["outcome"] == "duplicate"
    later.is_open = True
    await wait_for_delivery(database, "hook-old", "COMPLETED", within=60)
    later.is_open = False


async def _go_back(old: Replicas, new: Replicas, database: Any, load: Load) -> None:
    load.phase = "back-mixed"
    load.old_again_at = datetime.now(UTC)
    app = load.app
    await app.request({"id": "cancelled", "at": in_seconds(LATER), "topic": TOPIC, "revision": 3})
    await app.request({"id": "done", "at": in_seconds(LATER), "topic": TOPIC, "revision": 3})
    await run_step("shared.topology", old.site, old.code)
    await old.start(*SERVICES)
    await load.goes_on()
    await new.stop()

    load.phase = "back-alone"
    await app.request({"id": "unheard-again", "at": in_seconds(0), "topic": "unheard"})
    await wait_for_status(database, "unheard-again", "done")
    assert (await app.cancel("cancelled", revision=4))["outcome"] == "rejected"  # 0.1.0 knows no such field
    assert len(await app.parked(1)) == 1
    assert (await app.cancel("cancelled"))["outcome"] == "cancelled"  # in a later life
    rescheduled = {"id": "done", "at": in_seconds(0), "topic": TOPIC, "revision": 4}
    assert (await app.request(rescheduled))["outcome"] == "rescheduled"
    await wait_for_status(database, "done", "done")
    await load.goes_on()


async def _judge(database: Any, load: Load) -> None:
    """Judge what became of all jobs, once the last ones are published and called."""

    async def all_heard() -> bool:
        missing = load.once - {event.content["id"] for event in load.app.heard}
        assert not missing, f"{len(missing)} of {len(load.once)} are missing, such as {min(missing)}"
        return True

    await eventually(all_heard)
    assert (await load.app.cancel(STEADY))["outcome"] == "cancelled"

    async def all_delivered() -> bool:
        query = "select count(*) from deliveries where status <> 'COMPLETED'"
        return bool(await database.fetchval(query) == 0)

    await eventually(all_delivered)
    times = Counter(event.content["id"] for event in load.app.heard)
    assert {job for job in load.once if times[job] != 1} == set(), "exactly one event, for no process was killed"
    early = [event for event in load.app.heard if event.heard_at < parse_date_time(event.content["due_at"])]
    assert early == []
    assert times["waiting"] == 1, "its trigger was fired once"
    assert Counter(call.content["id"] for call in load.receiver.calls if call.path == "/hook") == dict.fromkeys(
        load.called, 1
    )
    assert await _with_status(database, "done") >= load.once
    assert await _with_status(database, "cancelled") >= load.cancelled | {STEADY, "cancelled"}
    assert await _with_status(database, "pending") == {"waiting", "paused"}
    _judge_steady(load)
    # The last of them may have been published and called by the old services, which tell no history.
    heard_at = {event.content["id"]: event.heard_at for event in load.app.heard}
    by_the_new = {job for job in load.of("new-alone") if heard_at[job] < load.old_again_at}
    query = "select job_id from deliveries where finished_at < $1"
    called_by_the_new = by_the_new & {row["job_id"] for row in await database.fetch(query, load.old_again_at)}
    assert called_by_the_new
    for job in by_the_new:
        what = set(await _told(database, job))
        assert what >= {"accepted", "fired", *(["delivered"] if job in called_by_the_new else [])}, job
    for phase in ("old", "back-alone"):
        assert {job: told for job in load.of(phase) if (told := await _told(database, job))} == {}
    assert await load.app.count(load.app.names.parked) == 0


def _judge_steady(load: Load) -> None:
    """A rule with an occurrence in each second has missed none, whichever release published it."""
    events = load.events_of(STEADY)
    assert [event.content["sequence"] for event in events] == list(range(1, len(events) + 1))
    due = [parse_date_time(event.content["due_at"]) for event in events]
    assert {after - before for before, after in pairwise(due)} == {timedelta(seconds=1)}


async def _broker_version(site: Site) -> tuple[int, ...]:
    connection = await aiormq.connect(site.amqp_url)
    try:
        return tuple(int(part) for part in str(connection.server_properties["version"]).split("."))
    finally:
        await connection.close()


async def _delay_a_message(app: Application, site: Site) -> None:
    """0.1.0 knows no delayed messages. The new services hold and publish them while the old ones run beside them."""
    target = "my-app.upgraded"
    queue = await app.channel.declare_queue(target, exclusive=True)
    await queue.bind(await app.channel.declare_exchange(target, aio_pika.ExchangeType.FANOUT, auto_delete=True))
    await declare_delay_exchange(app.channel, site.names, target)
    delay = await app.channel.get_exchange(site.names.delay_exchange(target))
    await delay.publish(aio_pika.Message(b"later", headers={"x-delay": 500}), "key")
    message = await eventually(lambda: queue.get(no_ack=True, fail=False))
    assert message
    assert (message.body, message.headers["x-delay"]) == (b"later", -500)
    await delete_delay_exchange(app.channel, site.names, target)


async def _newest_migration(database: Any) -> int:
    return int(await database.fetchval("select max(version) from duebell_migrations"))


async def _told(database: Any, job: str) -> list[str]:
    rows = await database.fetch("select what from history where job_id = $1 order by at", job)
    return [row["what"] for row in rows]


async def _with_status(database: Any, status: str) -> set[str]:
    return {row["id"] for row in await database.fetch("select id from jobs where status = $1", status)}
