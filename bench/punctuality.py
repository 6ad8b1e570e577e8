"""How late a ring is, from its due moment to the application that listens. A quorum queue hands a message on when it
has confirmed it, so this is due → confirmed, with the way to the listener on top. Idle; among many pending jobs; and
while a backlog of overdue ones is drained, of which only the rings that were due before it was gone count.

Beside it, between the same rings in the same seconds, to the same listener: a process that only sleeps until a moment
and publishes. On a busy machine that one is late, too.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from bench import child
from bench.figures import Beside, Figure, Goal, quantile
from bench.filling import PAYLOAD, TOPIC, add_later, add_overdue
from bench.plan import Plan
from bench.rig import QUEUE, Rig, Running
from bench.waiting import until

RINGS_TOPIC = "punctual.ring"
RING_KEY, FLOOR_KEY, BOTH = f"due.event.{RINGS_TOPIC}", "due.event.punctual.floor", "due.event.punctual.*"
BACKLOG_QUEUE = "bench.backlog"
# Goals for the 99th percentile: how much later than the bare process, and how late while a backlog is drained.
MAX_MS_ABOVE_BARE, MAX_MS_BESIDE_BACKLOG = 3.0, 100.0
# For the listener and the floor to start.
LEAD_SECONDS = 3.0
BACKLOG_LEFT = """
select exists(select from jobs where status = 'pending' and next_run_at <= now() - interval '30 seconds')
"""

RINGS = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at)
select 'ring-' || n, 'pending', 1, $1, $2::text::json, 'all', 60, to_timestamp($3 + n * $4::float8)
  from generate_series(0, $5 - 1) as n
"""


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    await rig.empty(BOTH)
    async for figure in _ring(rig, plan, "idle", MAX_MS_ABOVE_BARE):
        yield figure
    await rig.empty(BOTH)
    async with rig.database() as database:
        await add_later(database, plan.pending)
    async for figure in _ring(rig, plan, f"among {plan.pending:,} pending", MAX_MS_ABOVE_BARE):
        yield figure
    async for figure in _ring(
        rig, plan, f"and {plan.backlog:,} overdue being drained", MAX_MS_BESIDE_BACKLOG, plan.backlog
    ):
        yield figure


async def _ring(rig: Rig, plan: Plan, situation: str, goal_ms: float, backlog: int = 0) -> AsyncIterator[Figure]:
    async with rig.bound(BACKLOG_QUEUE, f"due.event.{TOPIC}"):
        with rig.service("producer") as producer, producer.cost_of(plan.rings + backlog) as bill:
            heard = await _work(rig, producer, plan, backlog)
    own, floor = heard.late(RING_KEY), heard.late(FLOOR_KEY)
    of = f"of {len(own)} rings"

    def beside(share: float) -> Beside:
        return Beside("a process that only sleeps and publishes", quantile(floor, share))

    yield Figure(f"{situation}: p50", quantile(own, 0.5), "ms", beside(0.5), cost=bill.cost, note=of)
    # The machine delays both, so the goal is relative. What the producer does while it drains a backlog counts in full.
    bare = 0.0 if backlog else quantile(floor, 0.99)
    goal = Goal(at_most=bare + goal_ms, of_the_figure=True)
    yield Figure(f"{situation}: p99", quantile(own, 0.99), "ms", beside(0.99), goal)
    yield Figure(f"{situation}: max", max(own), "ms", beside(1.0))
    if backlog:
        yield Figure(f"{situation}: its rate", backlog / (heard.until - heard.begin), "jobs/s")


@dataclass(frozen=True, slots=True)
class _Heard:
    begin: float  # when the producer was let go
    until: float  # what was due later does not count
    rings: dict[str, list[tuple[float, float]]]  # by routing key: when due, and how many milliseconds late

    def late(self, routing_key: str) -> list[float]:
        return [ms for due, ms in self.rings[routing_key] if due <= self.until]


async def _work(rig: Rig, producer: Running, plan: Plan, backlog: int) -> _Heard:
    pause, broker = plan.rings_seconds / plan.rings, rig.context.amqp_url
    async with rig.database() as database, asyncio.TaskGroup() as tasks:
        with producer.held_back():
            await database.execute("delete from jobs where topic = $1", RINGS_TOPIC)
            if backlog:
                await add_overdue(database, backlog)
            begin = time.time() + LEAD_SECONDS
            await database.execute(RINGS, RINGS_TOPIC, PAYLOAD, begin, pause, plan.rings)
            listening = tasks.create_task(
                child.ask("bench.event_listener", amqp_url=broker, queue=QUEUE, count=2 * plan.rings)
            )
            when = {"begin": begin + pause / 2, "pause": pause, "count": plan.rings}
            tasks.create_task(child.ask("bench.ceilings.punctual", amqp_url=broker, routing_key=FLOOR_KEY, **when))
            if backlog:
                await asyncio.sleep(begin - time.time())  # it is drained while they ring, not before
        let_go = time.time()

        async def none_left() -> bool:
            return not await database.fetchval(BACKLOG_LEFT)

        if backlog:
            await until(none_left, "the end of the backlog", look_every=0.2)
        drained = time.time()
    return _Heard(let_go, drained if backlog else math.inf, listening.result())
