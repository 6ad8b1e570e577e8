"""Other schedulers on the same work, in the same run: due jobs, each published to a durable quorum queue and confirmed,
by one process. Each is tuned as well as its documentation tells; the jobs are in place before the clock starts.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path

from bench import child
from bench.figures import Beside, Cost, Figure, Goal
from bench.firing import fire
from bench.peers.installing import DIRECTORY, PYTHON, CannotInstall, install_node_peers, install_python_peers
from bench.plan import Plan
from bench.rig import QUEUE, Rig

DRIVERS = Path(__file__).parent / "drivers"
BY_PYTHON = ("pgqueuer", "procrastinate", "apscheduler")
BY_NODE = ("pg_boss", "graphile_worker")


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    ours, cost = await fire(rig, plan.peer_jobs)
    yield Figure("Duebell", ours, "jobs/s", cost=cost)
    for peers, install in ((BY_PYTHON, install_python_peers), (BY_NODE, install_node_peers)):
        try:
            await install()
        except CannotInstall as error:
            raise child.ChildFailed(f"{', '.join(peers)} cannot be installed: {error}") from error
        for name in peers:
            result = await _measure(rig, name, plan.peer_jobs)
            spent = Cost(result.cpu_ms_per_1000, result.resident_mb)
            peer = name.replace("_", "-")
            yield Figure(peer, result.per_second, "jobs/s", Beside("Duebell", ours), Goal(at_most=1), spent)


async def _measure(rig: Rig, name: str, count: int) -> child.Result:
    await rig.empty()
    async with rig.database() as database:
        await database.execute(f"drop database if exists peer_{name} with (force)")
        await database.execute(f"create database peer_{name}")
    url = rig.ground.database_url.rpartition("/")[0] + f"/peer_{name}"
    arguments = {"database_url": url, "amqp_url": rig.ground.amqp_url, "queue": QUEUE}
    if name in BY_PYTHON:
        return await child.run(f"bench.peers.drivers.{name}", program=str(PYTHON), **arguments, count=count)
    environment = {**os.environ, "PEERS": str(DIRECTORY)}
    return await child.run_command(
        ["node", str(DRIVERS / f"{name}.mjs")], {**arguments, "count": count}, environment=environment
    )
