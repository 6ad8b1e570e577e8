"""One run on a cluster: strike, wait until the system is on time again, strike again, while the workload goes on."""

import asyncio
import time
from collections.abc import Collection
from pathlib import Path

from stack.errors import StackError
from tests.chaos.cluster.calm import wait_until_calm
from tests.chaos.cluster.script import rounds
from tests.chaos.cluster.strike_nodes import strike_nodes
from tests.chaos.cluster.strike_pair import strike_pair
from tests.chaos.cluster.system import ClusterSystem, running_cluster
from tests.chaos.faults import BROKER, ClusterFault
from tests.chaos.ledger import Ledger, Struck, now
from tests.chaos.run import Show
from tests.chaos.script import Strike
from tests.chaos.stages import all_ready, bring_to_an_end
from tests.chaos.workload import Mixture, Workload

# Most jobs are one-shots, the others rules of a few times, asked for twice, cancelled or rescheduled; a fifth has a
# webhook. None rings without end: while its cancel waits for a broker, the load would grow.
MIXTURE = Mixture((65, 15, 5, 10, 5, 0), webhooks=0.2)
COMMANDS_PER_JOB = 1.2
MAX_JOBS_AT_ONCE = 4000


async def run(
    directory: Path, show: Show, *, seed: int, seconds: float, rate: float, faults: Collection[ClusterFault]
) -> Ledger:
    """Strike with every fault once, and then again and again until so many seconds are over."""
    async with running_cluster(directory, seed) as system:
        await all_ready(system)
        every = COMMANDS_PER_JOB / rate
        workload = Workload(system.app, system.webhook_url, seed, every, MIXTURE, MAX_JOBS_AT_ONCE)
        working = asyncio.create_task(workload.run())
        try:
            await _strike_for(system, seed, seconds, faults, show)
        finally:
            workload.end()
            async with asyncio.timeout(system.ledger.drain_within.total_seconds()):
                await working
        await bring_to_an_end(system)
        return system.ledger


async def _strike_for(
    system: ClusterSystem, seed: int, seconds: float, faults: Collection[ClusterFault], show: Show
) -> None:
    end = time.monotonic() + seconds
    await wait_until_calm(system)
    for number, strikes in enumerate(rounds(seed, faults)):
        for strike in strikes:
            if number and time.monotonic() > end:
                return
            struck = await _perform(system, strike)
            system.ledger.struck.append(struck)
            show(struck)
            await wait_until_calm(system)
        if time.monotonic() > end:
            return


async def _perform(system: ClusterSystem, strike: Strike) -> Struck:
    began_at = now()
    fault = ClusterFault(strike.fault)
    try:
        note = await (strike_nodes(system.nodes, fault) if fault.target == BROKER else strike_pair(system, fault))
    except StackError as error:
        return Struck(strike, began_at, now(), str(error), missed=True)
    return Struck(strike, began_at, now(), note)
