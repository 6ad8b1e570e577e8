"""The system that a chaos run strikes: private stores, a receiver, the application, and two replicas of each service.
The second replica reaches its stores through a proxy. Timeouts and leases are short, so that an outage takes seconds.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from shared.postgres.migrate import migrate
from stack.ports import LOOPBACK
from stack.postgres import Postgres
from stack.rabbitmq import RabbitMQ
from stack.roles import role_of
from stack.stores import stores
from tests.chaos.application import Application
from tests.chaos.at_work import at_work, remove_old_logs, running_receiver
from tests.chaos.faults import BROKER, POSTGRES, SERVICES
from tests.chaos.ledger import Ledger
from tests.chaos.observed import ObservedSystem
from tests.chaos.proxy import Proxy
from tests.chaos.replicas import Replica
from tests.chaos.script import REPLICAS

BATCH_SIZE = 50
# A producer has five workers, with a claim each.
IN_FLIGHT = REPLICAS * 5 * BATCH_SIZE
HEARTBEAT = "?heartbeat=3"

SETTINGS = {
    "BATCH_SIZE": str(BATCH_SIZE),
    "PUBLISH_TIMEOUT_SECONDS": "3",
    "SHUTDOWN_GRACE_SECONDS": "10",
    "LEASE_MARGIN_SECONDS": "1",
    "RETRY_BASE_SECONDS": "0.5",
    "RETRY_CAP_SECONDS": "2",
    "BREAKER_FIRST_PAUSE_SECONDS": "0.5",
    "BREAKER_LONGEST_PAUSE_SECONDS": "2",
    "WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
}


@dataclass(slots=True)
class System(ObservedSystem):
    postgres: Postgres
    rabbitmq: RabbitMQ
    proxies: dict[str, Proxy]

    @property
    def database_url(self) -> str:
        return self.postgres.url

    @property
    def amqp_url(self) -> str:
        return self.rabbitmq.url


@asynccontextmanager
async def running_system(directory: Path, seed: int) -> AsyncIterator[System]:
    remove_old_logs(directory)
    with stores(directory, fsync=False) as (postgres, rabbitmq), running_receiver(directory, seed) as (url, calls):
        async with AsyncExitStack() as running:
            proxies = {
                name: await running.enter_async_context(Proxy(LOOPBACK, port).running())
                for name, port in ((BROKER, rabbitmq.port), (POSTGRES, postgres.port))
            }
            ledger = Ledger(in_flight=IN_FLIGHT)
            app = Application(rabbitmq.url + HEARTBEAT, ledger)
            replicas = {name: _replicas(name, postgres, rabbitmq, proxies, directory) for name in SERVICES}
            made = System(ledger, app, replicas, url, calls, postgres, rabbitmq, proxies)
            await migrate(postgres.url)
            await made.declare()
            await asyncio.to_thread(rabbitmq.sync_queue_register)
            async with at_work(made):
                yield made


def _replicas(
    service: str, postgres: Postgres, rabbitmq: RabbitMQ, proxies: dict[str, Proxy], directory: Path
) -> list[Replica]:
    urls = {
        "DATABASE_URL": postgres.url_of(role_of(service)),
        "AMQP_URL": rabbitmq.url_of(role_of(service)) + HEARTBEAT,
    }
    behind = {
        "DATABASE_URL": _through(proxies[POSTGRES], urls["DATABASE_URL"]),
        "AMQP_URL": _through(proxies[BROKER], urls["AMQP_URL"]),
    }
    return [
        Replica(service, f"{service}-{number}", {**SETTINGS, **way}, directory)
        for number, way in ((1, urls), (2, behind))
    ]


def _through(proxy: Proxy, url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{proxy.port}"))
