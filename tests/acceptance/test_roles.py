"""Each service has its own user of either store, with the rights that its work needs and no others. That these are
enough is shown by every other acceptance test; here is what they do not allow, and what becomes of a service that lacks
one of them.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aio_pika
import asyncpg
import pytest
from aio_pika.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import ChannelAccessRefused

from shared.contract.names import MASSTRANSIT_TOPIC, due_routing_key
from shared.postgres.migrate import migrate
from stack.roles import (
    APPLICATION,
    CONSOLE_USER,
    DEFINITIONS,
    READER,
    ROLES,
    as_variables,
    new_passwords,
    rabbitmq_definitions,
    role_of,
)
from tests.support.application import Application, an_application
from tests.support.builders import a_request
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import insert_due, wait_for_status
from tests.support.services import ROOT, service_process
from tests.support.stores import Site, Stores, put_topology, remove_topology

SERVICES = ["consumer", "producer", "delivery"]
NO_SERVICE_MAY = [
    "create table mine ()",
    "alter table jobs add column mine text",
    "drop table jobs",
    "truncate jobs",
    "alter table jobs disable trigger all",
    "insert into duebell_migrations (version, name) values (9999, 'mine')",
    "delete from duebell_migrations",
    "create role friend",
    "delete from delivery_attempts",
    "update delivery_attempts set status_code = 200",
    "create temporary table mine (); create trigger mine after insert on mine"
    " execute function delete_what_belongs_to_deliveries()",
]
MAY_NOT = {
    "consumer": [
        "delete from jobs",
        "update jobs set id = 'other'",
        "select from deliveries",
        "select from delivery_attempts",
        "update triggers set payload = '1'",
        "update triggers set fired_at = null",
        "insert into triggers (job_id, trigger_id, sequence, fired_at) values ('mine', 'x', 1, now())",
        "update job_labels set job_id = 'other'",
        "update bulks set by_user = 'me'",
        "update bulks set of_operator = true",
    ],
    "producer": [
        "insert into jobs (id) values ('mine')",
        "update jobs set payload = '1'",
        "update delayed_messages set body = ''",
        "update delayed_messages set exchange = 'payments'",
        "insert into delayed_messages (exchange) values ('payments')",
        "update jobs set webhook = '{}'",
        "update jobs set topic = 'other'",
        "update jobs set owner = 'me'",
        "update jobs set trigger_sequence = 0",
        "update jobs set labels = null",
        "insert into job_labels (label, job_id) values ('team=mine', 'mine')",
        "select from bulks",
        "insert into triggers (job_id, trigger_id, sequence) values ('mine', 'x', 1)",
        "update triggers set payload = '1'",
        "select from deliveries",
        "insert into deliveries (job_id) values ('mine')",
    ],
    "delivery": [
        "select from jobs",
        "select id from jobs",
        "update jobs set status = 'done'",
        "delete from jobs",
        "select from triggers",
        "select from delayed_messages",
        "update deliveries set url = 'https://example.com/'",
        "update deliveries set payload = '1'",
        "update deliveries set idempotency_key = 'other'",
        "insert into deliveries (version) values (7)",
    ],
}


@pytest.mark.parametrize("service", SERVICES)
async def test_a_database_role_may_do_nothing_but_its_work(site: Site, service: str) -> None:
    _skip_without_roles(site)
    connection = await asyncpg.connect(site.environment_of(service)["DATABASE_URL"], timeout=PATIENCE)
    try:
        assert await connection.fetchval("select max(version) from duebell_migrations")
        statements = NO_SERVICE_MAY + MAY_NOT[service]
        assert [statement for statement in statements if await _may_run(connection, statement)] == []
    finally:
        await connection.close(timeout=5)


async def _may_run(connection: Any, statement: str) -> bool:
    try:
        await connection.execute(statement)
    except asyncpg.InsufficientPrivilegeError:
        return False
    return True


TABLES = [
    "jobs", "triggers", "deliveries", "delivery_attempts", "delivery_announcements", "history", "history_rest",
    "service_instances", "duebell_migrations", "delayed_messages", "delay_exchanges",
    "job_labels", "bulks",
]  # fmt: skip
READER_MAY_NOT = [
    *NO_SERVICE_MAY,
    *(statement.format(table) for table in TABLES for statement in (
        "insert into {} default values", "delete from {}", "truncate {}", "drop table {}", "alter table {} add x int",
        "select from {} for update", "do $$ begin lock table {} in share mode; end $$", "create index on {} ((1))",
        "create trigger mine after delete on {} execute function pg_catalog.tsvector_update_trigger()",
    )),
    "update jobs set status = status",
    "update triggers set payload = payload",
    "update deliveries set status = status",
    "update delivery_announcements set refusals = refusals",
    "update history set note = note",
    "update service_instances set host = host",
    "select maintain_history(0)",
    "select nextval(pg_get_serial_sequence('deliveries', 'id'))",
    "select setval(pg_get_serial_sequence('deliveries', 'id'), 1)",
    "create schema mine",
    "create function mine() returns int language sql as 'select 1'",
]  # fmt: skip


async def test_the_reader_may_read_every_table_and_write_nothing(site: Site, database: Any) -> None:
    """Not even after it turned off the default of its role. It reads partitions that are newer than the grants, too."""
    _skip_without_roles(site)
    newest = await database.fetchval(
        "select max(inhrelid::regclass::text) from pg_inherits where inhparent = 'history'::regclass"
        " and inhrelid::regclass::text <> 'history_rest'"
    )
    await database.execute(f"drop table {newest}")
    await database.execute("select maintain_history(30)")
    await database.execute(
        "insert into history (at, job_id, what) values (to_date($1, '\"history_\"YYYYMMDD'), 'later', 'accepted')",
        newest,
    )
    connection = await asyncpg.connect(site.environment_of("reader")["DATABASE_URL"], timeout=PATIENCE)
    try:
        rows = await connection.fetch("select tablename from pg_tables where schemaname = 'public'")
        tables = {row[0] for row in rows if not row[0].startswith("history_2")}
        assert tables == set(TABLES), "what the reader may do to a new table has to be said here"
        for table in tables - {"history_rest"}:
            await connection.fetch(f"select * from {table}")
        may_call = "select proname from pg_proc where pronamespace = 'public'::regnamespace"
        may_call += " and has_function_privilege(oid, 'execute')"
        assert await connection.fetch(may_call) == []
        where = "select tableoid::regclass::text from history where job_id = 'later'"
        assert await connection.fetchval(where) == newest
        await connection.add_listener("duebell", lambda *_: None)
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await connection.execute("delete from jobs")
        await connection.execute("set default_transaction_read_only = off")
        assert [statement for statement in READER_MAY_NOT if await _may_run(connection, statement)] == []
    finally:
        await connection.close(timeout=5)


@asynccontextmanager
async def plain_topology(site: Site) -> AsyncIterator[Site]:
    """Under the names that RabbitMQ's rights on routing keys are about."""
    plain = replace(site, prefix="")
    await put_topology(plain)
    try:
        yield plain
    finally:
        # The exchanges stay: with an exchange RabbitMQ 4.3 deletes the rights on its routing keys.
        await remove_topology(plain, exchanges=False)


def _skip_without_roles(site: Site) -> None:
    if not site.own:
        pytest.skip("the tests did not start the stores, which have no roles")


async def _ignore(_: object) -> None:
    pass


async def _reads(channel: AbstractChannel, queue: str) -> None:
    await (await channel.get_queue(queue, ensure=False)).get(fail=False)


async def _consumes(channel: AbstractChannel, queue: str) -> None:
    await (await channel.get_queue(queue, ensure=False)).consume(_ignore)


async def _publishes(channel: AbstractChannel, exchange: str, key: str) -> None:
    target = await channel.get_exchange(exchange, ensure=False) if exchange else channel.default_exchange
    await target.publish(aio_pika.Message(b"{}"), key)


async def _declares(channel: AbstractChannel, queue: str) -> None:
    await channel.declare_queue(queue, durable=True)


async def _deletes(channel: AbstractChannel, queue: str) -> None:
    await channel.queue_delete(queue)


async def _purges(channel: AbstractChannel, queue: str) -> None:
    await (await channel.get_queue(queue, ensure=False)).purge()


async def _binds(channel: AbstractChannel, queue: str, exchange: str) -> None:
    await (await channel.get_queue(queue, ensure=False)).bind(exchange, "#")


async def _unbinds(channel: AbstractChannel, queue: str, exchange: str) -> None:
    await (await channel.get_queue(queue, ensure=False)).unbind(exchange, "#")


async def _may(connection: AbstractConnection, attempt: Any, *arguments: str) -> bool:
    channel = await connection.channel()
    try:
        await attempt(channel, *arguments)
    except ChannelAccessRefused:
        return False
    return True


SECRETS_OF_OTHERS: list[tuple[Any, ...]] = [
    (_declares, "mine"),
    (_declares, "scheduler.mine"),
    (_deletes, "scheduler.inbox"),
    (_purges, "scheduler.parked"),
    (_reads, "scheduler.parked"),
    (_reads, "scheduler.unrouted"),
    (_publishes, "schedule.unrouted", "x"),
]
USERS_MAY_NOT: dict[str, list[tuple[Any, ...]]] = {
    "duebell_consumer": [
        (_consumes, "scheduler.deliveries"),
        (_publishes, "schedule.events", "due.event.x"),
        (_publishes, "schedule.commands", "schedule.request"),
    ],
    "duebell_producer": [
        (_consumes, "scheduler.inbox"),
        (_consumes, "scheduler.deliveries"),
        (_publishes, "schedule.events", "delivery.completed.x"),
        (_publishes, "schedule.commands", "schedule.request"),
        (_publishes, "", "scheduler.inbox"),
        (_publishes, "payments", "x"),
        (_consumes, "scheduler.delayed"),
    ],
    "duebell_delivery": [
        (_consumes, "scheduler.inbox"),
        (_publishes, "schedule.events", "due.webhook.x"),
        (_publishes, "schedule.commands", "schedule.request"),
        (_publishes, "", "scheduler.inbox"),
    ],
    READER: [
        (_reads, "scheduler.inbox"),
        (_reads, "scheduler.deliveries"),
        (_publishes, "schedule.events", "due.event.x"),
        (_publishes, "schedule.commands", "schedule.request"),
        (_publishes, "schedule.commands", "schedule.query"),
        (_publishes, "schedule.parked", "x"),
        (_publishes, "", "scheduler.inbox"),
        (_publishes, "amq.topic", "x"),
        (_declares, ""),
        (_binds, "scheduler.inbox", "schedule.events"),
        (_unbinds, "scheduler.inbox", "schedule.commands"),
        (_unbinds, "scheduler.parked", "schedule.parked"),
    ],
    APPLICATION: [
        (_reads, "scheduler.inbox"),
        (_consumes, "scheduler.inbox"),
        (_consumes, "scheduler.deliveries"),
        (_publishes, "schedule.events", "due.event.x"),
        (_publishes, "schedule.commands", "something.else"),
        (_publishes, "schedule.parked", "x"),
        (_publishes, "", "scheduler.inbox"),
        (_binds, "scheduler.inbox", "schedule.events"),
        (_publishes, "delay.payments", "x"),
        (_publishes, "schedule.masstransit", ""),
        (_publishes, "", "scheduler.delayed"),
        (_binds, "scheduler.delayed", "my-app.mine"),
        (_consumes, "scheduler.delayed"),
    ],
}


@pytest.mark.parametrize("user", USERS_MAY_NOT)
async def test_a_user_of_the_broker_may_do_nothing_but_its_work(stores: Stores, site: Site, user: str) -> None:
    _skip_without_roles(site)
    assert stores.rabbitmq
    async with (
        plain_topology(site),
        await aio_pika.connect(stores.rabbitmq.url_of(user), timeout=PATIENCE) as connection,
    ):
        attempts = SECRETS_OF_OTHERS + USERS_MAY_NOT[user]
        assert [attempt for attempt in attempts if await _may(connection, *attempt)] == []


async def test_the_console_sends_events_again_but_no_message_of_masstransit(stores: Stores, site: Site) -> None:
    _skip_without_roles(site)
    assert stores.rabbitmq
    async with (
        plain_topology(site),
        await aio_pika.connect(stores.rabbitmq.url_of(CONSOLE_USER), timeout=PATIENCE) as connection,
    ):
        key = due_routing_key(MASSTRANSIT_TOPIC, has_webhook=False)
        assert await _may(connection, _publishes, "schedule.events", "due.event.x")
        assert not await _may(connection, _publishes, "schedule.events", key)
        assert not await _may(connection, _publishes, "schedule.masstransit", "")


async def test_an_application_can_do_its_part_with_queues_of_its_own(stores: Stores, site: Site) -> None:
    _skip_without_roles(site)
    assert stores.rabbitmq
    async with (
        plain_topology(site),
        await aio_pika.connect(stores.rabbitmq.url_of(APPLICATION), timeout=PATIENCE) as connection,
        connection.channel(on_return_raises=True) as channel,
    ):
        own = await channel.declare_queue("my-app.events", durable=True)
        await own.bind("schedule.events", "due.#")
        replies = await channel.declare_queue(exclusive=True)
        await replies.consume(_ignore)
        for command in ("request", "cancel", "pause", "resume", "trigger", "query", "bulk"):
            await _publishes(channel, "schedule.commands", f"schedule.{command}")
        with pytest.raises(ChannelAccessRefused):
            await own.bind("schedule.commands", "#")
        async with connection.channel() as another:
            await another.queue_delete("my-app.events")


async def test_a_service_waits_for_a_missing_right(site: Site, app: Application, database: Any, tmp_path: Path) -> None:
    """A command that cannot be stored for want of a right is neither parked nor lost."""
    _skip_without_roles(site)
    await database.execute("revoke insert on jobs from duebell_consumer")
    with service_process("consumer", site, tmp_path) as consumer:
        await app.send(a_request(id="patient"))

        async def waits() -> bool:
            return any("permission denied" in line["error"] for line in consumer.said("batch_waits"))

        await eventually(waits)
        assert await app.count(site.names.parked) == 0
        assert await migrate(site.database_url) == []  # grants anew
        await wait_for_status(database, "patient", "pending")


async def test_a_role_that_was_made_after_the_migration_is_told_what_to_run(
    site: Site, database: Any, tmp_path: Path
) -> None:
    _skip_without_roles(site)
    await database.execute("revoke all on all tables in schema public from duebell_producer")
    with service_process("producer", site, tmp_path) as producer:

        async def told() -> bool:
            return bool(producer.said("database_not_ready"))

        await eventually(told)
        assert "permission denied" in producer.said("database_not_ready")[0]["problem"]
        await migrate(site.database_url)
        await insert_due(database, 1)
        await wait_for_status(database, "job-000001", "done")
        assert "Traceback" not in producer.log.read_text()


async def test_a_user_without_the_right_to_declare_waits_for_one_that_has_it(
    site: Site, database: Any, tmp_path: Path
) -> None:
    _skip_without_roles(site)
    await remove_topology(site)
    with service_process("consumer", site, tmp_path) as consumer:

        async def told() -> bool:
            return bool(consumer.said("broker_not_ready"))

        await eventually(told)
        assert "run python -m shared.topology" in consumer.said("broker_not_ready")[0]["problem"]
        step = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "shared.topology", cwd=ROOT, env={**os.environ, **site.environment}
        )
        assert await step.wait() == 0
        async with an_application(site) as app:
            await app.request(a_request(id="late"))
        assert "Traceback" not in consumer.log.read_text()


async def test_the_definitions_have_the_exchanges_as_the_topology_declares_them(stores: Stores, site: Site) -> None:
    """RabbitMQ 4.3 does not start with rights on routing keys of an exchange that the definitions do not have; and with
    other arguments than the topology's no service could declare it.
    """
    definitions = json.loads(rabbitmq_definitions(new_passwords(), prefix=""))
    exchanges = {exchange["name"]: exchange for exchange in definitions["exchanges"]}
    assert {right["exchange"] for right in definitions["topic_permissions"]} == exchanges.keys()
    async with (
        await aio_pika.connect(stores.amqp_url, timeout=PATIENCE) as connection,
        connection.channel() as channel,
    ):
        for name, exchange in exchanges.items():  # under the names of this test, where the topology was declared
            arguments = {key: site.prefix + value for key, value in exchange["arguments"].items()}
            kinds = {key: exchange[key] for key in ("type", "durable", "auto_delete", "internal")}
            await channel.declare_exchange(site.prefix + name, arguments=arguments, **kinds)


def test_the_entry_point_of_the_broker_fills_in_the_same_file(tmp_path: Path) -> None:
    passwords = new_passwords()
    filled = tmp_path / "definitions.json"
    environment = {"PATH": os.defpath, "ROLES": str(DEFINITIONS), "FILLED": str(filled), **as_variables(passwords)}
    script = ["sh", str(ROLES / "rabbitmq.sh"), "echo", "started"]
    outcome = subprocess.run(script, env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert outcome.stdout == "started\n"
    assert filled.read_text() == rabbitmq_definitions(passwords, prefix="")
    assert filled.stat().st_mode & 0o777 == 0o600

    # In the container the cookie of Erlang is there before a health check could make one, which would be root's.
    del environment["FILLED"]
    cookies = []
    for _ in range(2):
        subprocess.run(script, env={**environment, "DATA": str(tmp_path)}, check=True, timeout=PATIENCE)
        cookies.append((tmp_path / ".erlang.cookie").read_text())
    assert re.fullmatch("[0-9a-f]{32}", cookies[0])
    assert cookies[1] == cookies[0], "a broker that was there before keeps its own"
    assert (tmp_path / ".erlang.cookie").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ".erlang.cookie").owner() == filled.owner()

    for bad in ("", "a/b", "a'b", "a b"):
        refused = subprocess.run(
            script,
            env={**environment, "DELIVERY_PASSWORD": bad},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert refused.returncode != 0
        assert "DELIVERY_PASSWORD" in refused.stderr
        assert "started" not in refused.stdout


def test_every_service_has_a_role() -> None:
    for service in SERVICES:
        assert role_of(service) in (ROLES / "postgres.sql").read_text()
        assert role_of(service) in DEFINITIONS.read_text()
