"""The system of a cluster run: three RabbitMQ nodes, two servers of Postgres, a receiver, the application, and two
replicas of each service. All of them have every host in their addresses, and the timeouts that an operator gets if they
set none.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from shared.postgres.migrate import migrate
from stack.errors import StackError
from stack.roles import OPERATOR, role_of
from tests.chaos.application import Application
from tests.chaos.at_work import at_work, remove_old_logs, running_receiver
from tests.chaos.cluster.nodes import NUMBER, Nodes, running_nodes
from tests.chaos.cluster.pair import Pair, running_pair
from tests.chaos.faults import SERVICES
from tests.chaos.ledger import Ledger
from tests.chaos.observed import ObservedSystem
from tests.chaos.replicas import Replica
from tests.chaos.script import REPLICAS

# Only what the receiver, which fails on purpose, makes necessary: a delivery is retried within seconds.
SETTINGS = {
    "RETRY_BASE_SECONDS": "0.5",
    "RETRY_CAP_SECONDS": "2",
    "BREAKER_FIRST_PAUSE_SECONDS": "0.5",
    "BREAKER_LONGEST_PAUSE_SECONDS": "2",
    "WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
}
# A producer has five workers, with a claim each.
IN_FLIGHT = REPLICAS * 5 * 1000
# A statement may take 30 s, and the work is then tried again.
EFFECTS_LAST = timedelta(seconds=60)
DRAIN_WITHIN = timedelta(seconds=240)


@dataclass(slots=True)
class ClusterSystem(ObservedSystem):
    nodes: Nodes
    pair: Pair

    @property
    def database_url(self) -> str:
        return self.pair.primary.url

    @property
    def amqp_url(self) -> str:
        return self.nodes.url


@asynccontextmanager
async def running_cluster(directory: Path, seed: int) -> AsyncIterator[ClusterSystem]:
    remove_old_logs(directory)
    with (
        running_pair(directory) as pair,
        running_nodes(directory) as nodes,
        running_receiver(directory, seed) as (webhook_url, calls),
    ):
        ledger = Ledger(in_flight=IN_FLIGHT, effects_last=EFFECTS_LAST, drain_within=DRAIN_WITHIN)
        # The application begins with another node than the services.
        app = Application(nodes.url_of(OPERATOR, first=1), ledger)
        replicas = {name: _replicas(name, nodes, pair, directory) for name in SERVICES}
        system = ClusterSystem(ledger, app, replicas, webhook_url, calls, nodes, pair)
        await migrate(pair.primary.url)
        await pair.replicate(synchronously=True)
        await system.declare()
        await _expect_three_members(nodes)
        for node in nodes.all:
            node.sync_queue_register()
        async with at_work(system):
            yield system


async def _expect_three_members(nodes: Nodes) -> None:
    """RabbitMQ gives a quorum queue a member on each of three nodes by itself."""
    for queue in await nodes.list_queues("members"):
        if len(queue["members"]) != NUMBER:
            raise StackError(f"{queue['name']} has the members {queue['members']}, not {NUMBER}")


def _replicas(service: str, nodes: Nodes, pair: Pair, directory: Path) -> list[Replica]:
    role = role_of(service)
    settings = {**SETTINGS, "AMQP_URL": nodes.url_of(role), "DATABASE_URL": pair.url_of(role)}
    return [Replica(service, f"{service}-{number}", settings, directory) for number in range(1, REPLICAS + 1)]
