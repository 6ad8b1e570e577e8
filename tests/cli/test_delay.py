"""`duebell delay`: an operator opens, closes and lists delay exchanges; or a setting of the consumer opens them."""

from typing import Any

import aio_pika
import pytest
from aiormq.exceptions import ChannelNotFoundEntity

from shared.contract.delayed import DEFAULT_EXCHANGE, read_target
from tests.cli.command_line import Operator
from tests.cli.command_line import duebell as duebell_alone
from tests.support.application import Application
from tests.support.eventually import eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site


async def test_an_opened_exchange_holds_messages_and_a_closed_one_refuses_them(
    site: Site, app: Application, duebell: Operator
) -> None:
    target = f"{site.prefix}orders"
    queue = await app.channel.declare_queue(f"{target}.q", exclusive=True)
    opened = await duebell("delay", "open", target)
    assert (opened.status, f"The exchange {target} is not there yet" in opened.out) == (0, True)
    await queue.bind(await app.channel.declare_exchange(target, aio_pika.ExchangeType.FANOUT, auto_delete=True))
    assert "not there" not in (await duebell("delay", "open", target)).out
    async with running_consumer(site):
        for delay in (3_600_000, 500):
            await publish(app, site.names.delay_exchange(target), str(delay).encode(), delay)

        async def waiting() -> bool:
            [listed] = (await duebell("delay", "list")).json
            assert (listed["exchange"], listed["waiting"], listed["refused"]) == (target, 2, 0)
            return listed["next_due_at"] is not None

        await eventually(waiting)
        closed = await duebell("delay", "close", target, "--yes")
        assert f"duebell delayed list --exchange {target}" in closed.out + closed.err
        assert not await is_open(site, target)
        async with running_producer(site):
            message = await eventually(lambda: queue.get(no_ack=True, fail=False))
            assert message
            assert (message.body, message.headers["x-delay"]) == (b"500", -500)
    [listed] = (await duebell("delay", "list")).json
    assert (listed["waiting"], listed["closed_at"] is not None) == (1, True)
    assert target in (await duebell("delay", "list", "--table")).out


async def is_open(site: Site, target: str) -> bool:
    async with await aio_pika.connect(site.amqp_url) as connection, connection.channel() as channel:
        try:
            await channel.get_exchange(site.names.delay_exchange(target))
        except ChannelNotFoundEntity:
            return False
    return True


async def publish(app: Application, exchange: str, body: bytes, delay: int) -> None:
    to = await app.channel.get_exchange(exchange)
    await to.publish(aio_pika.Message(body, headers={"x-delay": delay}), "key")


async def test_a_setting_of_the_consumer_opens_exchanges_and_opens_closed_ones_again(
    site: Site, app: Application, duebell: Operator, database: Any
) -> None:
    target = f"{site.prefix}stock"
    await duebell("delay", "open", target)
    await duebell("delay", "close", target, "--yes")
    async with running_consumer(site, delay_exchanges=(target, "")):

        async def known() -> bool:
            rows = await database.fetch("select exchange, closed_at from delay_exchanges order by exchange")
            assert [tuple(row) for row in rows] == [("", None), (target, None)]
            assert await is_open(site, target)
            return await is_open(site, "")

        assert await eventually(known)
        assert {each["exchange"] for each in (await duebell("delay", "list")).json} == {DEFAULT_EXCHANGE, target}
    for each in (target, DEFAULT_EXCHANGE):
        assert (await duebell("delay", "close", each, "--yes")).status == 0


@pytest.mark.parametrize("name", ["delay.orders", "x" * 181, "a\0"])
def test_a_target_that_can_have_no_delay_exchange_is_told(name: str) -> None:
    with pytest.raises(ValueError, match=r"delay exchange itself|more than 180 bytes|NUL"):
        read_target(name)


async def test_the_command_line_and_the_setting_name_what_is_wrong() -> None:
    refused = await duebell_alone("delay", "open", "delay.orders", AMQP_URL="amqp://a:b@localhost/")
    assert (refused.status, "EXCHANGE: delay.orders is a delay exchange itself" in refused.err) == (2, True)
