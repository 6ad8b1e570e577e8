"""The application's own users: enough for its work, which the other tests show, and nothing of Duebell's."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import aio_pika
import asyncpg
import pytest
from aio_pika.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import ChannelAccessRefused

from tests.birthdays.application import Home, Logins
from tests.support.eventually import PATIENCE
from tests.support.stores import put_topology, remove_topology

DENIED = [
    "select from public.jobs",
    "select id from public.jobs",
    "update public.jobs set status = 'done'",
    "delete from public.jobs",
    "insert into public.jobs (id) values ('mine')",
    "select from public.deliveries",
    "select from public.delivery_attempts",
    "select from public.duebell_migrations",
    "create table public.mine ()",
    "create schema mine",
    "create role friend",
]


async def test_its_database_role_has_no_access_to_the_schedulers_tables(home: Home) -> None:
    async with home.pool.acquire(timeout=10) as connection:
        assert await connection.fetchval("select current_user") == "birthdays"
        allowed = []
        for statement in DENIED:
            try:
                await connection.execute(statement)
            except asyncpg.InsufficientPrivilegeError:
                continue
            allowed.append(statement)
        assert allowed == []
        assert await connection.fetchval("select count(*) from users") == 0


Deed = Callable[[AbstractChannel], Awaitable[object]]


async def _publish(channel: AbstractChannel, exchange: str, key: str) -> None:
    target = await channel.get_exchange(exchange, ensure=False)
    await target.publish(aio_pika.Message(b"{}"), key)


FORBIDDEN: dict[str, Deed] = {
    "publish an event": lambda channel: _publish(channel, "schedule.events", "due.event.mine"),
    "publish to a queue by its name": lambda channel: _publish(channel, "", "scheduler.inbox"),
    "park": lambda channel: _publish(channel, "schedule.parked", ""),
    "publish another kind of command": lambda channel: _publish(channel, "schedule.commands", "schedule.other"),
    "declare a queue of others": lambda channel: channel.declare_queue("scheduler.mine"),
    "delete the inbox": lambda channel: channel.queue_delete("scheduler.inbox"),
    "purge the inbox": lambda channel: _purge(channel, "scheduler.inbox"),
    "read the inbox": lambda channel: _get(channel, "scheduler.inbox"),
    "read the deliveries": lambda channel: _get(channel, "scheduler.deliveries"),
}


async def _purge(channel: AbstractChannel, queue: str) -> None:
    await (await channel.get_queue(queue, ensure=False)).purge()


async def _get(channel: AbstractChannel, queue: str) -> None:
    await (await channel.get_queue(queue, ensure=False)).get(fail=False)


async def _is_refused(connection: AbstractConnection, deed: Deed) -> bool:
    try:
        async with connection.channel(on_return_raises=True) as channel:
            await deed(channel)
    except ChannelAccessRefused:
        return True
    return False


async def test_its_user_of_the_broker_may_send_commands_and_have_its_own_queue_and_nothing_else(
    home: Home, logins: Logins
) -> None:
    if not logins.on_broker:
        pytest.skip("the tests did not start the broker, which has no such user")
    plain = replace(home.site, prefix="")
    await put_topology(plain)
    try:
        async with await aio_pika.connect(home.environment["AMQP_URL"], timeout=PATIENCE) as connection:
            async with connection.channel(on_return_raises=True) as channel:
                await _publish(channel, "schedule.commands", "schedule.request")
                queue = await channel.declare_queue("birthdays.mine", durable=True)
                await queue.delete()
            assert [what for what, deed in FORBIDDEN.items() if not await _is_refused(connection, deed)] == []
    finally:
        # The exchanges stay: with an exchange RabbitMQ 4.3 deletes the rights on its routing keys.
        await remove_topology(plain, exchanges=False)
