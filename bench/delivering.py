"""How fast one delivery process makes webhook calls: from events that wait in its queue to every delivery COMPLETED,
each called, recorded and announced. Beside it, calls alone with the same bodies and connections: by aiohttp, which
delivery calls through, and by delivery's caller, which adds the guard and the deadline.
"""

import time
from collections.abc import AsyncIterator
from statistics import median

from bench import child
from bench.ceilings.messages import due_events
from bench.figures import Beside, Cost, Figure, Goal, middle
from bench.loading import publish_all
from bench.plan import Plan
from bench.receiving import a_receiver
from bench.rig import QUEUE, Rig, Running
from bench.waiting import until, until_messages
from shared.amqp.message import OutgoingMessage

CONNECTIONS = 64
ALONE = ("aiohttp", "delivery's caller")
COMPLETED = "select count(*) from deliveries where status = 'COMPLETED'"


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    async with a_receiver() as url:
        rounds = [
            (await deliver(rig, plan.webhooks, url), *[await _call_alone(plan, url, client) for client in ALONE])
            for _ in range(plan.rounds)
        ]
    own, *alone = (list(column) for column in zip(*rounds, strict=True))
    rate, cost = median(rate for rate, _ in own), middle([cost for _, cost in own])
    for client, goal, results in zip(ALONE, (Goal(at_least=0.4), None), alone, strict=True):
        beside = Beside(f"{client} alone", median(result.per_second for result in results))
        yield Figure(f"{plan.webhooks:,} webhooks", rate, "calls/s", beside, goal, cost)


async def deliver(rig: Rig, count: int, url: str) -> tuple[float, Cost]:
    await rig.empty("delivery.#")
    warm_up = max(1, count // 20)
    events = due_events(count + warm_up, url)
    with rig.service("delivery", MAX_IN_FLIGHT_PER_HOST=str(CONNECTIONS)) as delivery:
        await publish_all(rig.context.amqp_url, events[:warm_up])
        await until_completed(rig, warm_up)
        return await deliver_with(rig, delivery, events[warm_up:], warm_up)


async def deliver_with(rig: Rig, delivery: Running, events: list[OutgoingMessage], before: int) -> tuple[float, Cost]:
    with delivery.held_back():
        await publish_all(rig.context.amqp_url, events)
    began = time.perf_counter()
    with delivery.cost_of(len(events)) as bill:
        ended = await until_completed(rig, before + len(events))
    return len(events) / (ended - began), bill.cost


async def until_completed(rig: Rig, count: int) -> float:
    """Wait until deliveries are recorded and announced. Counting rows again and again would be a good part of what is
    measured.
    """
    async with rig.database() as database, rig.channel() as channel:

        async def completed() -> bool:
            return bool(await database.fetchval(COMPLETED) >= count)

        ended = await until_messages(channel, QUEUE, count)
        await until(completed, f"{count} deliveries")
        return ended


async def _call_alone(plan: Plan, url: str, client: str) -> child.Result:
    return await child.run(
        "bench.ceilings.calling", client=client, url=url, count=plan.webhooks, connections=CONNECTIONS
    )
