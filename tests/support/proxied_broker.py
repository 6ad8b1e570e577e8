"""A connection to RabbitMQ through a proxy that can drop the broker's answers. The server itself is not touched: other
tests may be using it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from shared.amqp.connection import Broker
from tests.chaos.proxy import Proxy, ProxyMode
from tests.support.stores import Site


@dataclass(frozen=True, slots=True)
class ProxiedBroker:
    """`broker` is a connection as services use it, made through `proxy`."""

    broker: Broker
    proxy: Proxy

    def lose_answers(self) -> None:
        self.proxy.set_mode(ProxyMode.ONE_WAY)

    def pass_answers_on(self) -> None:
        """Cut the connection that lost answers. A new connection gets its answers."""
        self.proxy.set_mode(ProxyMode.FAITHFUL)


@asynccontextmanager
async def a_proxied_broker(site: Site) -> AsyncIterator[ProxiedBroker]:
    """Connect through a proxy. Until `lose_answers()` it passes everything on, in both directions."""
    address = urlsplit(site.amqp_url)
    async with Proxy(address.hostname or "", address.port or 5672).running() as proxy:
        user, _, _ = address.netloc.rpartition("@")
        url = urlunsplit(address._replace(netloc=f"{user}@127.0.0.1:{proxy.port}"))
        async with Broker(url, name="test", names=site.names).connected() as broker:
            await broker.wait_until_up()
            yield ProxiedBroker(broker, proxy)
