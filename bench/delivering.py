"""How fast one delivery process makes webhook calls: from events that wait in its queue to every delivery COMPLETED,
each called, recorded and announced. Beside it, the chosen HTTP client alone with the same bodies and connections.
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
from bench.rig import Rig, Running
from bench.waiting import until
from shared.outgoing import Outgoing

CONNECTIONS = 64
COMPLETED = "select count(*) from deliveries where status = 'COMPLETED'"


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    async with a_receiver() as url:
        rounds = [(await deliver(rig, plan.webhooks, url), await _call_alone(plan, url)) for _ in range(plan.rounds)]
    rate = median(rate for (rate, _), _ in rounds)
    beside = Beside("the HTTP client alone", median(result.per_second for _, result in rounds))
    cost = middle([cost for (_, cost), _ in rounds])
    yield Figure(f"{plan.webhooks:,} webhooks", rate, "calls/s", beside, Goal(at_least=0.6), cost)


async def deliver(rig: Rig, count: int, url: str) -> tuple[float, Cost]:
    await rig.empty("delivery.#")
    warm_up = max(1, count // 20)
    events = due_events(count + warm_up, url)
    with rig.service("delivery", MAX_IN_FLIGHT_PER_HOST=str(CONNECTIONS)) as delivery:
        await publish_all(rig.ground.amqp_url, events[:warm_up])
        await until_completed(rig, warm_up)
        return await deliver_with(rig, delivery, events[warm_up:], warm_up)


async def deliver_with(rig: Rig, delivery: Running, events: list[Outgoing], before: int) -> tuple[float, Cost]:
    with delivery.held_back():
        await publish_all(rig.ground.amqp_url, events)
    began = time.perf_counter()
    with delivery.cost_of(len(events)) as bill:
        ended = await until_completed(rig, before + len(events))
    return len(events) / (ended - began), bill.cost


async def until_completed(rig: Rig, count: int) -> float:
    async with rig.database() as database:

        async def completed() -> bool:
            return bool(await database.fetchval(COMPLETED) >= count)

        return await until(completed, f"{count} deliveries")


async def _call_alone(plan: Plan, url: str) -> child.Result:
    return await child.run("bench.ceilings.calling", url=url, count=plan.webhooks, connections=CONNECTIONS)
