"""One chaos run: start the system, run workload and script at the same time, wait until all work is done, and record
what the tables and queues hold. `tests.chaos.invariants` checks the ledger afterwards.
"""

import asyncio
import json
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from shared.amqp.connection import BROKER_ERRORS
from shared.contract.names import Names
from shared.postgres.errors import RETRYABLE_ERRORS
from tests.chaos.application import LISTENER, REPLIES, read_event
from tests.chaos.faults import STORES
from tests.chaos.invariants import DRAIN_WITHIN
from tests.chaos.ledger import DeliveryRow, JobRow, Ledger, Parked, Struck, now
from tests.chaos.receiver import read_calls
from tests.chaos.script import Strike
from tests.chaos.strike_services import Missed, strike_service, wait_until_at_work
from tests.chaos.strike_stores import strike_store
from tests.chaos.system import System, running_system
from tests.chaos.workload import Workload

READY_SECONDS = 90.0
LOOK_SECONDS = 0.3
# Time for an event that should not come to come all the same.
QUIET_SECONDS = 2.0

Show = Callable[[Struck], None]

LEFT_OVER = {
    "jobs are still pending": "select count(*) from jobs where status = 'pending'",
    "deliveries are still open": "select count(*) from deliveries where status in ('PENDING', 'PROCESSING')",
    "outcomes are not announced yet": "select count(*) from delivery_announcements",
}


async def run(directory: Path, seed: int, script: Sequence[Strike], show: Show) -> Ledger:
    async with running_system(directory, seed) as system:
        await _all_ready(system)
        workload = Workload(system.app, system.webhook_url, seed)
        working = asyncio.create_task(workload.run())
        try:
            await _perform(system, script, show)
        finally:
            workload.end()
            async with asyncio.timeout(DRAIN_WITHIN.total_seconds()):
                await working
        await _drain(system)
        await asyncio.sleep(QUIET_SECONDS)
        for replica in system.all_replicas:
            replica.is_struck = True
            await replica.stop(signal.SIGTERM)
        await _read_the_end(system)
        return system.ledger


async def _all_ready(system: System) -> None:
    deadline = time.monotonic() + READY_SECONDS
    for replica in system.all_replicas:
        while not await asyncio.to_thread(replica.is_ready):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{replica.name} was not ready within {READY_SECONDS:.0f} s; see {replica.log}")
            await asyncio.sleep(LOOK_SECONDS)


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


async def _drain(system: System) -> None:
    """Wait until no work is left. After DRAIN_WITHIN, record what is left."""
    deadline = (system.ledger.last_fault_at or now()) + DRAIN_WITHIN
    while True:
        try:
            left = await _what_is_left(system)
        except (*RETRYABLE_ERRORS, *BROKER_ERRORS) as error:
            left = [f"the stores do not answer: {type(error).__name__}"]
        if not left:
            system.ledger.drained_at = now()
            return
        if now() > deadline:
            system.ledger.left_over = left
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _what_is_left(system: System) -> list[str]:
    left = []
    async with system.database() as database:
        for what, count in LEFT_OVER.items():
            if number := await database.fetchval(count):
                left.append(f"{number} {what}")
    async with system.channel() as channel:
        for name in (Names().inbox, Names().deliveries, LISTENER, REPLIES):
            queue = await channel.declare_queue(name, passive=True)
            if number := queue.declaration_result.message_count:
                left.append(f"{number} messages are still in {name}")
    return left


async def _read_the_end(system: System) -> None:
    ledger = system.ledger
    async with system.database() as database:
        ledger.jobs = [JobRow(*row) for row in await database.fetch("select id, status, revision, sequence from jobs")]
        ledger.deliveries = [
            DeliveryRow(*row) for row in await database.fetch("select job_id, idempotency_key, status from deliveries")
        ]
    async with system.channel() as channel:
        unrouted = await channel.get_queue(Names().unrouted)
        while message := await unrouted.get(no_ack=True, fail=False):
            if (message.routing_key or "").startswith("due."):
                kept = read_event(message.body, now())
                ledger.heard.append(replace(kept, seen_at=kept.fired_at))  # in this queue since then
        parked = await channel.get_queue(Names().parked)
        while message := await parked.get(no_ack=True, fail=False):
            command = json.loads(message.body)
            ledger.parked.append(Parked(command["id"], command["revision"], str(message.headers["duebell-reason"])))
    ledger.calls = read_calls(system.calls_file)
    ledger.fenced = sum(replica.said("lease_lost") for replica in system.all_replicas)
