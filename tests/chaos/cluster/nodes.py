"""Three RabbitMQ nodes on this machine that are one cluster."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from stack.directory import LOGS
from stack.ports import LOOPBACK
from stack.rabbitmq import RabbitMQ
from stack.roles import OPERATOR

NUMBER = 3
# As docs/operations/stores.md recommends: a node that sees no other stops serving until it does, and one that is silent
# is given up after 15 s. RabbitMQ's default is a minute, for which all queues that the silent node leads stand still.
SETTINGS = {"cluster_partition_handling": "pause_minority", "net_ticktime": "15"}
ESTABLISHED = "01"


class Nodes:
    """The nodes, in the order of AMQP_URL."""

    def __init__(self, all_nodes: list[RabbitMQ]) -> None:
        self.all = all_nodes

    @property
    def living(self) -> list[RabbitMQ]:
        return [node for node in self.all if node.alive()]

    def url_of(self, user: str, first: int = 0) -> str:
        """The address with all hosts, beginning with that one."""
        ordered = self.all[first:] + self.all[:first]
        hosts = ",".join(f"{LOOPBACK}:{node.port}" for node in ordered)
        return f"amqp://{user}:{ordered[0].passwords[user]}@{hosts}/"

    @property
    def url(self) -> str:
        """The operator's, of one node that runs."""
        return self.living[0].url_of(OPERATOR)

    def in_use(self) -> RabbitMQ:
        """The node that has most connections of clients."""
        counts = _connections()
        return max(self.living, key=lambda node: counts[node.port])

    async def leader(self) -> RabbitMQ:
        """The node that leads most of the queues."""
        told = await self.list_queues("leader")
        names = Counter(queue["leader"] for queue in told)
        return max(self.living, key=lambda node: names[node.name])

    async def list_queues(self, *columns: str) -> list[dict[str, str]]:
        listed = await asyncio.to_thread(self.living[0].ctl, "list_queues", "name", *columns, "--formatter=json")
        queues: list[dict[str, str]] = json.loads(listed)
        return queues


@contextmanager
def running_nodes(directory: Path) -> Iterator[Nodes]:
    """Start the nodes: the first alone, then the others, which join it."""
    logs = directory / LOGS
    with ExitStack() as open_nodes:
        first = open_nodes.enter_context(RabbitMQ(directory / "node-1", logs=logs / "node-1", settings=SETTINGS))
        others = [
            RabbitMQ(directory / f"node-{number}", logs=logs / f"node-{number}", settings=SETTINGS, joins=first)
            for number in range(2, NUMBER + 1)
        ]
        for other in others:
            open_nodes.callback(other.close)
        with ThreadPoolExecutor(max_workers=len(others)) as together:
            list(together.map(lambda other: other.start(), others))
        yield Nodes([first, *others])


def _connections() -> Counter[int]:
    """The number of connections that are open on this machine, by the port of the server."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return Counter(int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == ESTABLISHED)
