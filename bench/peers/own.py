"""Duebell on the peers' work. Its handler is the publish: wherever a peer's handler does nothing, Duebell still
publishes and waits for the confirm, and a ring counts as heard when it has come to a listener.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import aiormq
import orjson
from aiormq.abc import DeliveredMessage

from bench.figures import Cost
from bench.filling import PAYLOAD
from bench.firing import fire_with
from bench.rig import QUEUE, Rig

TOPIC = "peers"
LEAD_SECONDS = 1.0
PATIENCE = 20.0

RINGS = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at)
select $1 || n, 'pending', 1, $2, $3::text::json, 'all', 60, to_timestamp($4 + n * $5::float8)
  from generate_series(1, $6) as n
"""


@dataclass(frozen=True, slots=True)
class Take:
    """One measurement: jobs per second, until all are confirmed and their rows are done, whatever else is pending; and
    lateness.
    """

    per_second: float
    cost: Cost
    late_ms: Sequence[float]


async def take(rig: Rig, jobs: int, rings: int, rings_seconds: float, name: str) -> Take:
    await rig.purge()
    with rig.service("producer") as producer:
        late = await _lateness(rig, rings, rings_seconds, f"ring-{name}-")
        await rig.purge()
        rate, cost = await fire_with(rig, producer, jobs, name=f"due-{name}-")
    return Take(rate, cost, late)


async def _lateness(rig: Rig, count: int, seconds: float, name: str) -> list[float]:
    """Return the milliseconds from due to heard, of each job."""
    late: list[float] = []
    all_heard = asyncio.Event()

    async def hear(message: DeliveredMessage) -> None:
        heard_at, event = time.time(), orjson.loads(message.body)
        if event["id"].startswith(name):
            late.append((heard_at - datetime.fromisoformat(event["due_at"]).timestamp()) * 1000)
        if len(late) == count:
            all_heard.set()

    connection = await aiormq.connect(rig.context.amqp_url)
    try:
        channel = await connection.channel()
        await channel.basic_consume(QUEUE, hear, no_ack=True)
        async with rig.database() as database:
            begin, pause = time.time() + LEAD_SECONDS, seconds / count
            await database.execute(RINGS, name, TOPIC, PAYLOAD, begin, pause, count)
        async with asyncio.timeout(LEAD_SECONDS + seconds + PATIENCE):
            await all_heard.wait()
    finally:
        await connection.close()
    return late
