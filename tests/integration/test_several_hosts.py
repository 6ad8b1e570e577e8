"""Several hosts in DATABASE_URL: each has a share of the time, and the one that was used last is asked first."""

from urllib.parse import urlsplit

import asyncpg
import pytest

from shared.postgres.database import Database
from shared.postgres.pool import open_pool
from tests.chaos.proxy import Proxy, ProxyMode
from tests.support.deaf_server import Deaf
from tests.support.stores import Site


def behind(site: Site, *hosts: str) -> str:
    own = urlsplit(site.database_url).netloc.rpartition("@")[2]
    return site.database_url.replace(f"@{own}", f"@{','.join([*hosts, own])}")


async def test_a_deaf_first_host_is_left_and_the_good_one_asked_first_from_then_on(site: Site) -> None:
    async with Deaf().listening() as deaf, open_pool(behind(site, deaf.address), "test", 2) as pool:
        async with pool.acquire(timeout=30) as first, pool.acquire(timeout=30) as second:
            assert await first.fetchval("select 1") == await second.fetchval("select 1") == 1
        assert deaf.connections == 1


async def test_all_sessions_on_a_host_that_went_silent_end_when_one_finds_another_host(site: Site) -> None:
    own = urlsplit(site.database_url)
    assert own.hostname
    assert own.port
    first, other = Proxy(own.hostname, own.port), Proxy(own.hostname, own.port)
    async with first.running(), other.running():
        hosts = f"127.0.0.1:{first.port},127.0.0.1:{other.port}"
        url = site.database_url.replace(own.netloc.rpartition("@")[2], hosts)
        async with open_pool(url, "test", 2) as pool, pool.acquire() as one, pool.acquire() as two:
            first.set_mode(ProxyMode.STALLING)
            one.terminate()  # as after a statement that had no answer in time
            async with pool.acquire(timeout=30) as again:
                assert await again.fetchval("select 1") == 1
            with pytest.raises(asyncpg.InterfaceError, match="released"):
                await two.fetchval("select 1", timeout=5)


async def test_if_no_host_answers_the_error_says_what_each_did(site: Site) -> None:
    url = "postgresql://u:secret@127.0.0.1:1,[::1]:1/d"
    with pytest.raises(ConnectionError, match=r"127.0.0.1:1: .*; \[::1\]:1: ") as refused:
        await Database(url, "test").connect()
    assert "secret" not in str(refused.value)
