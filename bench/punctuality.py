"""How late a ring is, from its due moment to the application that listens. A quorum queue hands a message on when it
has confirmed it, so this is due → confirmed, with the way to the listener on top. Idle; among many pending jobs; and
while a backlog of overdue ones is drained.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime

import aiormq
import orjson
from aiormq.abc import DeliveredMessage

from bench.figures import Figure, Goal, quantile
from bench.filling import PAYLOAD, add_later, add_overdue
from bench.plan import Plan
from bench.rig import QUEUE, Rig
from bench.waiting import TookTooLong

PUNCTUAL = "punctual"
LEAD_SECONDS = 2.0

RINGS = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at)
select 'ring-' || n, 'pending', 1, $1, $2::text::json, 'all', 60, to_timestamp($3 + n * $4::float8)
  from generate_series(1, $5) as n
"""


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    await rig.empty(f"due.event.{PUNCTUAL}")
    for figure in await _listen(rig, plan, "idle", 8.0):
        yield figure
    await rig.empty(f"due.event.{PUNCTUAL}")
    async with rig.database() as database:
        await add_later(database, plan.pending)
    for figure in await _listen(rig, plan, f"among {plan.pending:,} pending", 8.0):
        yield figure
    for figure in await _listen(rig, plan, f"and {plan.backlog:,} overdue being drained", 100.0, plan.backlog):
        yield figure


async def _listen(rig: Rig, plan: Plan, situation: str, goal_ms: float, backlog: int = 0) -> list[Figure]:
    with rig.service("producer") as producer, producer.cost_of(plan.rings) as bill:
        async with rig.database() as database:
            await database.execute("delete from jobs where topic = $1", PUNCTUAL)
            begin, pause = time.time() + LEAD_SECONDS, plan.rings_seconds / plan.rings
            await database.execute(RINGS, PUNCTUAL, PAYLOAD, begin, pause, plan.rings)
            if backlog:
                await add_overdue(database, backlog)
        late = await _hear(rig, plan.rings, LEAD_SECONDS + plan.rings_seconds + 30)
    return [
        Figure(f"{situation}: p50", quantile(late, 0.5), "ms", cost=bill.cost),
        Figure(f"{situation}: p99", quantile(late, 0.99), "ms", goal=Goal(at_most=goal_ms)),
        Figure(f"{situation}: max", max(late), "ms"),
    ]


async def _hear(rig: Rig, count: int, patience: float) -> list[float]:
    """Milliseconds from due_at to here, of each."""
    late: list[float] = []
    all_heard = asyncio.Event()

    async def hear(message: DeliveredMessage) -> None:
        heard_at = time.time()
        due_at = datetime.fromisoformat(orjson.loads(message.body)["due_at"])
        late.append((heard_at - due_at.timestamp()) * 1000)
        if len(late) == count:
            all_heard.set()

    connection = await aiormq.connect(rig.ground.amqp_url)
    try:
        channel = await connection.channel()
        await channel.basic_consume(QUEUE, hear, no_ack=True)
        async with asyncio.timeout(patience):
            await all_heard.wait()
    except TimeoutError:
        raise TookTooLong(f"{len(late)} of {count} rings were heard within {patience:.0f} s") from None
    finally:
        await connection.close()
    return late
