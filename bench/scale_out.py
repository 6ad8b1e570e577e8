"""Two replicas of each service on the same stores: at least as fast as one, nothing twice, no wait for a lock."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from statistics import median

from bench.ceilings.messages import due_events, requests
from bench.delivering import CONNECTIONS, until_completed
from bench.figures import Beside, Cost, Figure, Goal, middle
from bench.filling import add_due
from bench.ingest import until_stored
from bench.keys import count_copies
from bench.loading import publish_all
from bench.plan import Plan
from bench.receiving import a_receiver
from bench.rig import QUEUE, Rig, Running
from bench.waiting import until_fired

WARM_UP = 1000
# Waiting for a new page at the end of a table is not waiting for another session's row.
LOCK_WAITS = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and wait_event <> 'extend'"
LOOK_EVERY = 0.01


@dataclass(frozen=True, slots=True)
class Outcome:
    per_second: float
    cost: Cost
    copies: int
    lock_waits: int


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    for service, unit, work in (
        ("producer", "jobs/s", _fire),
        ("consumer", "requests/s", _store),
        ("delivery", "calls/s", _deliver),
    ):
        rounds = [(await work(rig, plan, 1), await work(rig, plan, 2)) for _ in range(plan.rounds)]
        one, two = (list(column) for column in zip(*rounds, strict=True))
        beside = Beside("one of them", _rate(one))
        cost = middle([outcome.cost for outcome in two])
        yield Figure(f"two of {service}", _rate(two), unit, beside, Goal(at_least=1), cost)
        copies, waits = sum(outcome.copies for outcome in two), sum(outcome.lock_waits for outcome in two)
        yield Figure(f"two of {service}: done twice", copies, "copies", goal=Goal(at_most=0))
        yield Figure(f"two of {service}: seen waiting for a lock", waits, "sessions", goal=Goal(at_most=0))


def _rate(outcomes: Sequence[Outcome]) -> float:
    return median(outcome.per_second for outcome in outcomes)


async def _fire(rig: Rig, plan: Plan, processes: int) -> Outcome:
    count = 2 * plan.few
    await rig.empty()
    async with rig.database() as database, rig.channel() as channel:
        with _services(rig, "producer", processes) as running:
            await add_due(database, WARM_UP, "warm-")
            await until_fired(channel, database, QUEUE, WARM_UP)
            with held_back(running):
                await add_due(database, count)
            outcome = await _measured(
                rig, running, count, lambda: until_fired(channel, database, QUEUE, WARM_UP + count)
            )
    return outcome(await count_copies(rig, QUEUE))


async def _store(rig: Rig, plan: Plan, processes: int) -> Outcome:
    count = 2 * plan.few
    await rig.empty()
    with _services(rig, "consumer", processes) as running:
        await publish_all(rig.context.amqp_url, requests(WARM_UP, "warm-"))
        await until_stored(rig, WARM_UP, "warm-")
        with held_back(running):
            await publish_all(rig.context.amqp_url, requests(count, "asked-"))
        outcome = await _measured(rig, running, count, lambda: until_stored(rig, count, "asked-"))
    async with rig.database() as database:
        return outcome(await database.fetchval("select count(*) from jobs where version > 1"))


async def _deliver(rig: Rig, plan: Plan, processes: int) -> Outcome:
    await rig.empty("delivery.#")
    warm_up = max(1, plan.webhooks // 20)
    async with a_receiver() as url:
        events = due_events(plan.webhooks + warm_up, url)
        with _services(rig, "delivery", processes, MAX_IN_FLIGHT_PER_HOST=str(CONNECTIONS)) as running:
            await publish_all(rig.context.amqp_url, events[:warm_up])
            await until_completed(rig, warm_up)
            with held_back(running):
                await publish_all(rig.context.amqp_url, events[warm_up:])
            outcome = await _measured(rig, running, plan.webhooks, lambda: until_completed(rig, len(events)))
    async with rig.database() as database:
        return outcome(await database.fetchval("select count(*) from delivery_attempts") - len(events))


async def _measured(
    rig: Rig, running: list[Running], count: int, finished: Callable[[], Awaitable[float]]
) -> Callable[[int], Outcome]:
    with ExitStack() as bills:
        written = [bills.enter_context(process.cost_of(count)) for process in running]
        async with _counted_lock_waits(rig) as waits:
            began = time.perf_counter()
            seconds = await finished() - began
    # The stores' part is the same in each.
    cost = replace(
        written[0].cost,
        cpu_ms_per_1000=sum(bill.cost.cpu_ms_per_1000 for bill in written),
        resident_mb=max(bill.cost.resident_mb for bill in written),
    )
    return lambda copies: Outcome(count / seconds, cost, copies, sum(waits))


@asynccontextmanager
async def _counted_lock_waits(rig: Rig) -> AsyncIterator[list[int]]:
    seen: list[int] = []

    async def look() -> None:
        async with rig.database() as database:
            while True:
                seen.append(await database.fetchval(LOCK_WAITS))
                await asyncio.sleep(LOOK_EVERY)

    looking = asyncio.create_task(look())
    try:
        yield seen
    finally:
        looking.cancel()
        await asyncio.wait({looking})


@contextmanager
def _services(rig: Rig, module: str, processes: int, **settings: str) -> Iterator[list[Running]]:
    with ExitStack() as started:
        yield [started.enter_context(rig.service(module, name=f"{module}-{n}", **settings)) for n in range(processes)]


@contextmanager
def held_back(running: list[Running]) -> Iterator[None]:
    with ExitStack() as frozen:
        for process in running:
            frozen.enter_context(process.held_back())
        yield
