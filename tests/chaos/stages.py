"""The beginning and the end of a run: wait until the services are ready, wait until all work is done, and record what
the tables and queues hold. `tests.chaos.invariants` checks the ledger afterwards.
"""

import asyncio
import json
import signal
import time
from dataclasses import replace

from shared.amqp.connection import BROKER_ERRORS
from shared.contract.names import Names
from shared.postgres.errors import RETRYABLE_ERRORS
from tests.chaos.application import LATER_QUEUE, LISTENER, REPLIES, read_event
from tests.chaos.ledger import DeliveryRow, JobRow, Parked, now
from tests.chaos.observed import ObservedSystem
from tests.chaos.receiver import read_calls

READY_SECONDS = 90.0
LOOK_SECONDS = 0.3
# Time for an event that should not come to come all the same.
QUIET_SECONDS = 2.0

LEFT_OVER = {
    "jobs are still pending": "select count(*) from jobs where status = 'pending'",
    "delayed messages still wait": "select count(*) from delayed_messages",
    "deliveries are still open": "select count(*) from deliveries where status in ('PENDING', 'PROCESSING')",
    "outcomes are not announced yet": "select count(*) from delivery_announcements",
}
OWN_QUEUES = (Names().inbox, Names().delayed, Names().expired, Names().deliveries)


async def all_ready(system: ObservedSystem) -> None:
    deadline = time.monotonic() + READY_SECONDS
    for replica in system.all_replicas:
        while not await asyncio.to_thread(replica.is_ready):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{replica.name} was not ready within {READY_SECONDS:.0f} s; see {replica.log}")
            await asyncio.sleep(LOOK_SECONDS)


async def bring_to_an_end(system: ObservedSystem) -> None:
    """Wait until no work is left, stop the services in good order, and record what the stores hold."""
    await _drain(system)
    await asyncio.sleep(QUIET_SECONDS)
    for replica in system.all_replicas:
        replica.is_struck = True
        await replica.stop(signal.SIGTERM)
    await _read_the_end(system)


async def _drain(system: ObservedSystem) -> None:
    """Wait until no work is left. After `drain_within`, record what is left."""
    deadline = (system.ledger.last_fault_at or now()) + system.ledger.drain_within
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


async def _what_is_left(system: ObservedSystem) -> list[str]:
    left = []
    async with system.database() as database:
        for what, count in LEFT_OVER.items():
            if number := await database.fetchval(count):
                left.append(f"{number} {what}")
    async with system.channel() as channel:
        for name in (*OWN_QUEUES, LISTENER, LATER_QUEUE, REPLIES):
            queue = await channel.declare_queue(name, passive=True)
            if number := queue.declaration_result.message_count:
                left.append(f"{number} messages are still in {name}")
    return left


async def _read_the_end(system: ObservedSystem) -> None:
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
