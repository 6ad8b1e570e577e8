"""Several hosts in AMQP_URL: the connection goes on to the next when one is away, says nothing, or freezes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from shared.amqp.connection import Broker, connect_to_any, urls_of_hosts
from shared.runtime.addresses import Address, parse_address
from tests.chaos.proxy import Proxy, ProxyMode
from tests.support.deaf_server import Deaf
from tests.support.eventually import eventually
from tests.support.stores import Site


@asynccontextmanager
async def a_proxy_before(address: Address) -> AsyncIterator[Proxy]:
    host, _, port = address.hosts[0].partition(":")
    async with Proxy(host, int(port or 5672)).running() as proxy:
        yield proxy


def url_of(address: Address, *hosts: str, query: str = "") -> str:
    return str(Address(address.scheme, address.user, hosts, address.path, query))


async def test_a_host_that_is_away_or_says_nothing_is_left_for_the_next(site: Site) -> None:
    address = parse_address(site.amqp_url)
    async with Deaf().listening() as deaf:
        url = url_of(address, "127.0.0.1:1", deaf.address, address.hosts[0])
        with capture_logs() as logs:
            async with Broker(url, name="test", names=site.names).connected() as broker:
                await broker.wait_until_up()
        tried = [(line["event"], line["host"]) for line in logs if line["event"].startswith("broker_")]
        assert tried == [
            ("broker_not_ready", "127.0.0.1:1"),
            ("broker_not_ready", deaf.address),
            ("broker_connected", address.hosts[0]),
        ]
        connection = await connect_to_any(url, "test", 1.0)
        await connection.close()


@pytest.mark.parametrize("freezes", [False, True])
async def test_a_host_that_dies_or_freezes_is_left_for_the_next(site: Site, freezes: bool) -> None:
    address = parse_address(site.amqp_url)
    async with a_proxy_before(address) as first, a_proxy_before(address) as second:
        url = url_of(address, f"127.0.0.1:{first.port}", f"127.0.0.1:{second.port}", query="heartbeat=1")
        with capture_logs() as logs:
            async with Broker(url, name="test", names=site.names).connected() as broker:
                await broker.wait_until_up()
                if freezes:
                    first.set_mode(ProxyMode.ONE_WAY)
                else:
                    first.cut()

                async def is_on_the_second() -> bool:
                    connected = [line["host"] for line in logs if line["event"] == "broker_connected"]
                    return connected[-1] == f"127.0.0.1:{second.port}" and broker.is_up

                await eventually(is_on_the_second)
                async with broker.open_channel():
                    pass


def test_each_host_gets_the_whole_rest_of_the_address_and_a_heartbeat() -> None:
    assert urls_of_hosts("amqps://u:p%40@a:5671,[::1]/v%2Fh") == [
        "amqps://u:p%40@a:5671/v%2Fh?heartbeat=5",
        "amqps://u:p%40@[::1]/v%2Fh?heartbeat=5",
    ]
    assert urls_of_hosts("amqp://a") == ["amqp://a?heartbeat=10"]
    assert urls_of_hosts("amqp://a/?heartbeat=3&x=1") == ["amqp://a/?heartbeat=3&x=1"]
