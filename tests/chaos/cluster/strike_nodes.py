"""Strikes at the nodes of RabbitMQ. Each returns when all nodes run again."""

import asyncio

from stack.rabbitmq import RabbitMQ
from tests.chaos.cluster.nodes import Nodes
from tests.chaos.faults import ClusterFault

# A node is away for so long. Its cluster has another leader long before.
AWAY_SECONDS = 10.0
# Much longer than it takes until services and nodes give it up.
FROZEN_SECONDS = 60.0


async def strike_nodes(nodes: Nodes, fault: ClusterFault) -> str:
    """Make the fault happen. Returns a note for the ledger."""
    match fault:
        case ClusterFault.NODE_IN_USE_KILLED:
            await _kill(nodes.in_use())
        case ClusterFault.LEADER_KILLED:
            leader = await nodes.leader()
            note = "the node in use" if leader is nodes.in_use() else "another node than that in use"
            await _kill(leader)
            return note
        case ClusterFault.EACH_NODE_KILLED:
            for node in nodes.all:
                await _kill(node)
        case ClusterFault.NODE_FROZEN:
            node = nodes.in_use()
            await asyncio.to_thread(node.pause)
            await asyncio.sleep(FROZEN_SECONDS)
            node.resume()
            await asyncio.sleep(AWAY_SECONDS)
            # It was given up, and may be a partition of its own now, as `rabbitmqctl cluster_status` shows. An operator
            # restarts such a node.
            await asyncio.to_thread(node.restart)
        case _:
            in_use = nodes.in_use()
            await _kill(in_use, next(node for node in nodes.all if node is not in_use))
    return ""


async def _kill(*victims: RabbitMQ) -> None:
    """Kill the nodes at the same moment, and start them again at the same moment."""
    await asyncio.gather(*(asyncio.to_thread(node.kill) for node in victims))
    await asyncio.sleep(AWAY_SECONDS)
    await asyncio.gather(*(asyncio.to_thread(node.start) for node in victims))
