"""What the console reads from the stores, when they are slow, or say nothing."""

import asyncio

import pytest

from console import queues
from console.queues import count_messages
from console.web import context
from shared.postgres.pool import open_pool
from tests.support.consoles import a_console
from tests.support.eventually import PATIENCE
from tests.support.proxied_broker import a_proxied_broker
from tests.support.stores import Site


async def test_a_page_reads_for_a_limited_time_and_holds_no_connection_after_it(
    site_without_queues: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = context.READ_TIMEOUT
    async with open_pool(site_without_queues.database_url, "test", size=1) as pool, asyncio.timeout(PATIENCE):
        console = a_console(pool, console_open_on_loopback=True)
        monkeypatch.setattr(context, "READ_TIMEOUT", 2.0)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with console.reading() as connection:
                    await connection.fetchval("select pg_sleep(600)")
        monkeypatch.setattr(context, "READ_TIMEOUT", usual)
        async with console.reading() as connection:
            assert await connection.fetchval("select 1") == 1


async def test_queues_are_counted_and_one_that_is_gone_is_told_from_a_broker_that_is_silent(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_proxied_broker(site) as proxied:
        broker = proxied.broker
        assert await count_messages(broker, site.names) == dict.fromkeys(
            ("inbox", "delayed", "deliveries", "parked", "unrouted"), 0
        )
        async with broker.open_channel() as channel:
            await channel.queue_delete(site.names.delayed)
        counted = await count_messages(broker, site.names)
        assert counted is not None
        assert (counted["delayed"], counted["parked"]) == (None, 0)
        monkeypatch.setattr(queues, "COUNT_TIMEOUT", 5.0)
        proxied.lose_answers()
        async with asyncio.timeout(20):  # five queues, one after the other, would take 25 s
            assert await count_messages(broker, site.names) is None
