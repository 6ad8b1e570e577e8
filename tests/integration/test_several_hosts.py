"""Several hosts in DATABASE_URL: each has a share of the time, and the one that was used last is asked first."""

from urllib.parse import urlsplit

import pytest

from shared.postgres.database import Database
from shared.postgres.pool import open_pool
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


async def test_if_no_host_answers_the_error_says_what_each_did(site: Site) -> None:
    url = "postgresql://u:secret@127.0.0.1:1,[::1]:1/d"
    with pytest.raises(ConnectionError, match=r"127.0.0.1:1: .*; \[::1\]:1: ") as refused:
        await Database(url, "test").connect()
    assert "secret" not in str(refused.value)
