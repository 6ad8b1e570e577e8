"""How fast one producer fires what is due: confirmed ScheduleDue in a quorum queue, and rows done. Beside it the
broker's own ceiling (the same events, encoded beforehand, on one socket) and a producer that awaits aio-pika's publish
in a gather.
"""

import time
from collections.abc import AsyncIterator
from statistics import median

from bench import child
from bench.figures import Beside, Cost, Figure, Goal, middle
from bench.filling import DAILY, add_due, add_later
from bench.plan import Plan
from bench.rig import QUEUE, Rig, Running
from bench.waiting import until_fired

# Enough for every worker of the producer to have grown its claims to their full size, as in a process that has run for
# a while.
WARM_UP = 5000


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    rounds = [await _round(rig, plan.few) for _ in range(plan.rounds)]
    own, ceiling, gathering = (list(column) for column in zip(*rounds, strict=True))
    ceiling_rate = median(result.per_second for result in ceiling)
    rate, cost = median(rate for rate, _ in own), middle([cost for _, cost in own])
    what = f"{plan.few:,} one-shots"
    yield Figure(what, rate, "jobs/s", Beside("batched publishes alone", ceiling_rate), Goal(at_least=0.6), cost)
    by_gather = median(result.per_second for result in gathering)
    yield Figure(what, rate, "jobs/s", Beside("a gather of aio-pika publishes", by_gather), Goal(at_least=3), cost)

    many, many_cost = await fire(rig, plan.many)
    at_many = (await _ceiling(rig, plan.many)).per_second
    beside = Beside("batched publishes alone", at_many)
    yield Figure(f"{plan.many:,} one-shots", many, "jobs/s", beside, Goal(at_least=0.6), many_cost)

    recurring, recurring_cost = await fire(rig, plan.few, rule=DAILY)
    yield Figure(
        f"{plan.few:,} rings of rules",
        recurring,
        "jobs/s",
        Beside("one-shots", rate),
        Goal(at_least=0.5),
        recurring_cost,
    )

    yield await _among_pending(rig, plan)


async def _among_pending(rig: Rig, plan: Plan) -> Figure:
    """Measure firing among a million jobs, which are written once. Firing and its ceiling take turns, so that a busy
    moment meets both.
    """
    what = f"{plan.few:,} one-shots among {plan.pending:,} pending"
    await rig.empty()
    async with rig.database() as database:
        await add_later(database, plan.pending)
    rounds = [await _round_among(rig, plan.few, f"among-{number}-") for number in range(plan.rounds)]
    fired, ceiling = (list(column) for column in zip(*rounds, strict=True))
    rate, cost = median(rate for rate, _ in fired), middle([cost for _, cost in fired])
    beside = Beside("batched publishes alone", median(result.per_second for result in ceiling))
    return Figure(what, rate, "jobs/s", beside, Goal(at_least=0.6), cost)


async def _round_among(rig: Rig, count: int, name: str) -> tuple[tuple[float, Cost], child.Result]:
    with rig.service("producer") as producer:
        fired = await fire_with(rig, producer, count, name=name)
    await rig.purge()
    ceiling = await child.run("bench.ceilings.publish", amqp_url=rig.context.amqp_url, count=count)
    await rig.purge()
    return fired, ceiling


async def _round(rig: Rig, count: int) -> tuple[tuple[float, Cost], child.Result, child.Result]:
    return await fire(rig, count), await _ceiling(rig, count), await _gather(rig, count)


async def fire(rig: Rig, count: int, *, rule: str | None = None, history: str = "all") -> tuple[float, Cost]:
    """Measure jobs per second, from the moment the producer may begin to the commit of the last job."""
    await rig.empty()
    with rig.service("producer", HISTORY=history) as producer:
        return await fire_with(rig, producer, count, rule=rule)


async def fire_with(
    rig: Rig, producer: Running, count: int, *, rule: str | None = None, name: str = "due-"
) -> tuple[float, Cost]:
    async with rig.database() as database, rig.channel() as channel:
        await add_due(database, WARM_UP, f"warm-{name}", rule)
        await until_fired(channel, database, QUEUE, WARM_UP)
        with producer.held_back():
            await add_due(database, count, name, rule)
            queue = await channel.get_queue(QUEUE)
            await queue.purge()
        began = time.perf_counter()
        with producer.cost_of(count) as bill:
            ended = await until_fired(channel, database, QUEUE, count)
        return count / (ended - began), bill.cost


async def _ceiling(rig: Rig, count: int) -> child.Result:
    await rig.empty()
    return await child.run("bench.ceilings.publish", amqp_url=rig.context.amqp_url, count=count)


async def _gather(rig: Rig, count: int) -> child.Result:
    await rig.empty()
    async with rig.database() as database:
        await add_due(database, count)
    where = {"database_url": rig.context.database_url, "amqp_url": rig.context.amqp_url}
    return await child.run("bench.ceilings.gathering", **where, count=count)
