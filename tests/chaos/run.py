"""One run: start everything, let the workload and the script go side by side, wait until all has come to its end, and
write down what the tables and queues hold. Judging is somebody else's.
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
from tests.chaos.checking import DRAIN_WITHIN
from tests.chaos.faults import STORES
from tests.chaos.ledger import DeliveryRow, JobRow, Ledger, Parked, Struck, now
from tests.chaos.receiver import read_calls
from tests.chaos.scene import Scene, scene
from tests.chaos.script import Strike
from tests.chaos.strike_services import Missed, strike_service, wait_until_at_work
from tests.chaos.strike_stores import strike_store
from tests.chaos.workload import Workload

READY_SECONDS = 90.0
LOOK_SECONDS = 0.3
# Long enough for a straggler that should not come to come all the same.
QUIET_SECONDS = 2.0

Show = Callable[[Struck], None]

LEFT_OVER = {
    "jobs are still pending": "select count(*) from jobs where status = 'pending'",
    "deliveries are still open": "select count(*) from deliveries where status in ('PENDING', 'PROCESSING')",
    "outcomes are not announced yet": "select count(*) from delivery_announcements",
}


async def run(directory: Path, seed: int, script: Sequence[Strike], show: Show) -> Ledger:
    async with scene(directory, seed) as on:
        await _all_ready(on)
        workload = Workload(on.app, on.webhook_url, seed)
        working = asyncio.create_task(workload.run())
        try:
            await _perform(on, script, show)
        finally:
            workload.end()
            async with asyncio.timeout(DRAIN_WITHIN.total_seconds()):
                await working
        await _drain(on)
        await asyncio.sleep(QUIET_SECONDS)
        for replica in on.everybody:
            replica.in_hand = True
            await replica.stop(signal.SIGTERM)
        await _read_the_end(on)
        return on.ledger


async def _all_ready(on: Scene) -> None:
    deadline = time.monotonic() + READY_SECONDS
    for replica in on.everybody:
        while not await asyncio.to_thread(replica.is_ready):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{replica.name} was not ready within {READY_SECONDS:.0f} s; see {replica.log}")
            await asyncio.sleep(LOOK_SECONDS)


async def _perform(on: Scene, script: Sequence[Strike], show: Show) -> None:
    """The tracks at the same time, each in its order."""
    began = time.monotonic()

    async def perform_track(strikes: Sequence[Strike]) -> None:
        for strike in strikes:
            await asyncio.sleep(began + strike.at - time.monotonic())
            if strike.track != STORES:
                await wait_until_at_work(on, strike)
            struck = await _perform_one(on, strike)
            on.ledger.struck.append(struck)
            show(struck)

    async with asyncio.TaskGroup() as tracks:
        for name in dict.fromkeys(strike.track for strike in script):
            tracks.create_task(perform_track([strike for strike in script if strike.track == name]))


async def _perform_one(on: Scene, strike: Strike) -> Struck:
    hand, began_at = strike_store if strike.track == STORES else strike_service, now()
    try:
        note = await hand(on, strike)
    except (Missed, ProcessLookupError) as miss:  # or it has just ended by itself
        return Struck(strike, began_at, now(), str(miss), missed=True)
    return Struck(strike, began_at, now(), note)


async def _drain(on: Scene) -> None:
    """Waits until nothing is left to do; what is left when the time is over is written down."""
    deadline = (on.ledger.last_fault_at or now()) + DRAIN_WITHIN
    while True:
        try:
            left = await _what_is_left(on)
        except (*RETRYABLE_ERRORS, *BROKER_ERRORS) as error:
            left = [f"the stores do not answer: {type(error).__name__}"]
        if not left:
            on.ledger.drained_at = now()
            return
        if now() > deadline:
            on.ledger.left_over = left
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _what_is_left(on: Scene) -> list[str]:
    left = []
    async with on.database() as database:
        for what, count in LEFT_OVER.items():
            if number := await database.fetchval(count):
                left.append(f"{number} {what}")
    async with on.channel() as channel:
        for name in (Names().inbox, Names().deliveries, LISTENER, REPLIES):
            queue = await channel.declare_queue(name, passive=True)
            if number := queue.declaration_result.message_count:
                left.append(f"{number} messages are still in {name}")
    return left


async def _read_the_end(on: Scene) -> None:
    ledger = on.ledger
    async with on.database() as database:
        ledger.jobs = [JobRow(*row) for row in await database.fetch("select id, status, revision, sequence from jobs")]
        ledger.deliveries = [
            DeliveryRow(*row) for row in await database.fetch("select job_id, idempotency_key, status from deliveries")
        ]
    async with on.channel() as channel:
        unrouted = await channel.get_queue(Names().unrouted)
        while message := await unrouted.get(no_ack=True, fail=False):
            if (message.routing_key or "").startswith("due."):
                kept = read_event(message.body, now())
                ledger.heard.append(replace(kept, seen_at=kept.fired_at))  # it has been there since
        parked = await channel.get_queue(Names().parked)
        while message := await parked.get(no_ack=True, fail=False):
            command = json.loads(message.body)
            ledger.parked.append(Parked(command["id"], command["revision"], str(message.headers["duebell-reason"])))
    ledger.calls = read_calls(on.calls_file)
    ledger.fenced = sum(replica.said("lease_lost") for replica in on.everybody)
