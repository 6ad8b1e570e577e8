"""One chaos run: start the system, run workload and script at the same time, and bring it to an end."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.chaos.faults import STORES
from tests.chaos.ledger import Ledger, Struck, now
from tests.chaos.script import Strike
from tests.chaos.stages import all_ready, bring_to_an_end
from tests.chaos.strike_services import Missed, strike_service, wait_until_at_work
from tests.chaos.strike_stores import strike_store
from tests.chaos.system import System, running_system
from tests.chaos.workload import Workload

Show = Callable[[Struck], None]


async def run(directory: Path, seed: int, script: Sequence[Strike], show: Show) -> Ledger:
    async with running_system(directory, seed) as system:
        await all_ready(system)
        workload = Workload(system.app, system.webhook_url, seed)
        working = asyncio.create_task(workload.run())
        try:
            await _perform(system, script, show)
        finally:
            workload.end()
            async with asyncio.timeout(system.ledger.drain_within.total_seconds()):
                await working
        await bring_to_an_end(system)
        return system.ledger


async def _perform(system: System, script: Sequence[Strike], show: Show) -> None:
    """Strike on all tracks at the same time, on each in the order of the script."""
    began = time.monotonic()

    async def perform_track(strikes: Sequence[Strike]) -> None:
        for strike in strikes:
            await asyncio.sleep(began + strike.at - time.monotonic())
            if strike.track != STORES:
                await wait_until_at_work(system, strike)
            struck = await _perform_one(system, strike)
            system.ledger.struck.append(struck)
            show(struck)

    async with asyncio.TaskGroup() as tracks:
        for name in dict.fromkeys(strike.track for strike in script):
            tracks.create_task(perform_track([strike for strike in script if strike.track == name]))


async def _perform_one(system: System, strike: Strike) -> Struck:
    strike_one, began_at = strike_store if strike.track == STORES else strike_service, now()
    try:
        note = await strike_one(system, strike)
    except (Missed, ProcessLookupError) as miss:  # or it has just ended by itself
        return Struck(strike, began_at, now(), str(miss), missed=True)
    return Struck(strike, began_at, now(), note)
