"""A broker that gets everything, and whose answers are lost on the way when a test says so. The server itself goes on:
other tests may be using it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from shared.amqp.connection import Broker
from tests.chaos.proxy import Manner, Proxy
from tests.support.stores import Site


@dataclass(frozen=True, slots=True)
class ProxiedBroker:
    """`broker` is a service's own connection, through a proxy."""

    broker: Broker
    proxy: Proxy

    def lose_answers(self) -> None:
        self.proxy.behave(Manner.ONE_WAY)

    def pass_answers_on(self) -> None:
        """On a new connection: the answers that were lost stay lost, and the old connection is cut."""
        self.proxy.behave(Manner.FAITHFUL)


@asynccontextmanager
async def a_proxied_broker(site: Site) -> AsyncIterator[ProxiedBroker]:
    """At first it passes everything on, in both directions."""
    address = urlsplit(site.amqp_url)
    async with Proxy(address.hostname or "", address.port or 5672).running() as proxy:
        user, _, _ = address.netloc.rpartition("@")
        url = urlunsplit(address._replace(netloc=f"{user}@127.0.0.1:{proxy.port}"))
        async with Broker(url, name="test", names=site.names).connected() as broker:
            await broker.wait_until_up()
            yield ProxiedBroker(broker, proxy)
