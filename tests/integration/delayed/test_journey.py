"""Delayed messages on their way: held, published when they are due, as they were sent."""

import time
from typing import Any

from shared.postgres.delay_exchanges import open_exchanges
from tests.support.application import Application
from tests.support.delayed import a_delayed_sender, properties
from tests.support.eventually import eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site


async def none_waits(database: Any) -> None:
    async def look() -> bool:
        left = await database.fetchval("select count(*) from delayed_messages")
        assert left == 0, f"{left} wait"
        return True

    await eventually(look)


async def test_a_message_is_published_when_its_delay_is_over_and_not_earlier(site: Site, database: Any) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        began = time.monotonic()
        await sender.send(b"body", "invoices.due", headers={"x-delay": 700, "a": 1}, message_id="m-1", priority=3)
        [heard] = await sender.hears(1)
        assert time.monotonic() - began >= 0.7
        assert (heard.body, heard.exchange, heard.routing_key) == (b"body", sender.exchange, "invoices.due")
        assert heard.header == properties(headers={"x-delay": -700, "a": 1}, message_id="m-1", priority=3)
        await none_waits(database)
    told = await database.fetch("select what, details->>'exchange' as exchange from history where job_id = 'm-1'")
    assert [tuple(row) for row in told] == [("accepted", sender.exchange), ("fired", sender.exchange)]


async def test_messages_of_one_moment_leave_in_the_order_in_which_they_came(site: Site) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site, batch_size=100):
        moment = int(time.time() * 1000) + 2000
        for number in range(1500):
            await sender.send(str(number).encode(), headers={"x-deliver-at": moment})
        heard = await sender.hears(1500)
    assert time.time() * 1000 >= moment
    assert [int(message.body) for message in heard] == list(range(1500))


async def test_a_message_whose_expiration_ends_while_no_consumer_runs_is_held_all_the_same(
    site: Site, app: Application, database: Any
) -> None:
    async with a_delayed_sender(site) as sender:
        await open_exchanges(database, [sender.exchange])
        await sender.send(b"short", "k", headers={"x-delay": 1, "a": "b"}, expiration="1000", app_id="shop")

        async def expired() -> bool:
            assert await app.count(site.names.expired) == 1
            return True

        await eventually(expired)
        async with running_consumer(site), running_producer(site):
            [heard] = await sender.hears(1)
    assert heard.header == properties(headers={"x-delay": -1, "a": "b"}, expiration="1000", app_id="shop")
    assert (heard.routing_key, heard.body) == ("k", b"short")


async def test_a_message_that_comes_to_a_consumer_again_arrives_as_it_was_sent(site: Site, app: Application) -> None:
    """RabbitMQ counts in headers how often a quorum queue has delivered a message."""
    async with a_delayed_sender(site) as sender:
        await sender.send(b"body", headers={"x-delay": 1, "a": 1}, message_id="m")
        queue = await app.channel.get_queue(site.names.delayed)
        taken = await eventually(lambda: queue.get(fail=False))
        assert taken
        await taken.nack(requeue=True)
        async with running_consumer(site), running_producer(site):
            [heard] = await sender.hears(1)
    assert heard.header == properties(headers={"x-delay": -1, "a": 1}, message_id="m")


async def test_a_message_is_stored_once_although_the_rest_of_its_batch_has_to_be_stored_again(
    site: Site, database: Any
) -> None:
    await database.execute("""
        create sequence tries;
        create function fail_once() returns trigger language plpgsql as $$
        begin
            if nextval('tries') = 1 then
                raise exception 'as two consumers may' using errcode = 'deadlock_detected';
            end if;
            return new;
        end $$;
        create trigger fail_once before insert on delayed_messages
            for each row when (new.name is not null) execute function fail_once();
        """)
    async with a_delayed_sender(site) as sender:
        await sender.send(b"without a name", headers={"x-delay": 3_600_000})
        await sender.send(b"with a name", headers={"x-delay": 3_600_000, "duebell-id": "n"})
        async with running_consumer(site):

            async def both_wait() -> bool:
                assert await database.fetchval("select count(*) from delayed_messages where name = 'n'") == 1
                return True

            await eventually(both_wait)
    assert await database.fetchval("select last_value from tries") == 2
    assert await database.fetchval("select count(*) from delayed_messages") == 2


async def test_copies_are_routed_when_the_message_is_due_and_blind_ones_are_lost(site: Site, app: Application) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        copied, blind = [
            await app.channel.declare_queue(f"{site.prefix}{name}", exclusive=True) for name in ("copied", "blind")
        ]
        await copied.bind(sender.exchange, "copy")
        await blind.bind(sender.exchange, "blind")
        await sender.send(b"body", "key", headers={"x-delay": 100, "CC": ["copy"], "BCC": ["blind"]})
        [heard] = await sender.hears(1)
        assert heard.header == properties(headers={"x-delay": -100, "CC": ["copy"]})
        copy = await eventually(lambda: copied.get(no_ack=True, fail=False))
        assert copy
        assert (copy.body, copy.headers["CC"]) == (b"body", ["copy"])
        assert await blind.get(no_ack=True, fail=False) is None
