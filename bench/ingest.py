"""How fast one consumer stores ScheduleRequests that wait in its inbox: from the moment it may begin until all rows are
committed and acknowledged. Beside it, aiormq alone consuming and acknowledging the same messages.
"""

import time
from collections.abc import AsyncIterator
from statistics import median

from bench import child
from bench.ceilings.messages import requests
from bench.figures import Beside, Cost, Figure, Goal, middle
from bench.loading import publish_all
from bench.plan import Plan
from bench.rig import NAMES, Rig, Running
from bench.waiting import depth, until

WARM_UP = 1000
# By the primary key: a pattern would read the whole table.
COUNT = "select count(*) from jobs where id >= $1 and id < $1 || '~'"


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    rounds = [(await _store(rig, plan.few), await _consume_alone(rig, plan.few)) for _ in range(plan.rounds)]
    rate = median(rate for (rate, _), _ in rounds)
    beside = Beside("aiormq alone, consume and ack", median(result.per_second for _, result in rounds))
    cost = middle([cost for (_, cost), _ in rounds])
    yield Figure(f"{plan.few:,} requests", rate, "requests/s", beside, Goal(at_least=0.7), cost)


async def _store(rig: Rig, count: int) -> tuple[float, Cost]:
    await rig.empty()
    with rig.service("consumer") as consumer:
        return await store_with(rig, consumer, count)


async def store_with(rig: Rig, consumer: Running, count: int, name: str = "asked-") -> tuple[float, Cost]:
    warm, measured = requests(WARM_UP, f"warm-{name}"), requests(count, name)
    await publish_all(rig.context.amqp_url, warm)
    await until_stored(rig, WARM_UP, f"warm-{name}")
    with consumer.held_back():
        await publish_all(rig.context.amqp_url, measured)
    began = time.perf_counter()
    with consumer.cost_of(count) as bill:
        ended = await until_stored(rig, count, name)
    return count / (ended - began), bill.cost


async def until_stored(rig: Rig, count: int, name: str) -> float:
    async with rig.database() as database, rig.channel() as channel:

        async def taken() -> bool:
            return await depth(channel, NAMES.inbox) == 0

        async def stored() -> bool:
            return bool(await database.fetchval(COUNT, name) == count)

        await until(taken, "an empty inbox")
        return await until(stored, f"{count} rows")


async def _consume_alone(rig: Rig, count: int) -> child.Result:
    await rig.empty()
    await publish_all(rig.context.amqp_url, requests(count, "alone-"))
    return await child.run("bench.ceilings.consuming", amqp_url=rig.context.amqp_url, queue=NAMES.inbox, count=count)
