"""The same work beside more and more jobs: claim, firing, ingest and memory must not follow the size of the table."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from statistics import median

from bench.figures import Beside, Figure, Goal
from bench.filling import add_done, add_due, add_later
from bench.firing import fire_with
from bench.ingest import store_with
from bench.plan import Plan
from bench.rig import Rig
from producer.store import BACKLOG, FRESH, PLANNER, claim_due, seconds_until_next

CLAIM = 100
CLAIMS = 50
TAKES = 2  # the better one counts: a moment in which the machine did something else says nothing about the table
GOAL = 1.5


@dataclass(frozen=True, slots=True)
class Costs:
    claim_ms: float
    fired_per_second: float
    stored_per_second: float
    producer_mb: float
    consumer_mb: float


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    await rig.empty()
    smallest: Costs | None = None
    there = 0
    for pending in plan.beside_pending:
        async with rig.database() as database:
            await add_later(database, pending - there, f"later-{pending}-")
        there = pending
        costs = await _measure(rig, plan, f"p{pending}-")
        smallest = smallest or costs
        for figure in _figures(costs, smallest, f"{pending:,} pending"):
            yield figure
    async with rig.database() as database:
        await add_done(database, plan.beside_done)
    costs = await _measure(rig, plan, "last-")
    for figure in _figures(costs, smallest or costs, f"{there:,} pending, {plan.beside_done:,} done"):
        yield figure


async def _measure(rig: Rig, plan: Plan, name: str) -> Costs:
    claim_ms = await _claim_ms(rig, f"claim-{name}")
    with rig.service("producer") as producer:
        fired = [await fire_with(rig, producer, plan.few, name=f"due-{n}-{name}") for n in range(TAKES)]
    with rig.service("consumer") as consumer:
        stored = [await store_with(rig, consumer, plan.few, name=f"asked-{n}-{name}") for n in range(TAKES)]
    return Costs(
        claim_ms,
        fired_per_second=max(rate for rate, _ in fired),
        stored_per_second=max(rate for rate, _ in stored),
        producer_mb=fired[-1][1].resident_mb,
        consumer_mb=stored[-1][1].resident_mb,
    )


async def _claim_ms(rig: Rig, name: str) -> float:
    """A producer's look at the table: a claim in each lane, and the look ahead. Rolled back: each is the same."""
    taken = []
    async with rig.database() as database:
        await add_due(database, CLAIM, name)
        for setting, value in PLANNER.items():
            await database.execute(f"set {setting} = {value}")
        for _ in range(CLAIMS):
            transaction = database.transaction()
            await transaction.start()
            began = time.perf_counter()
            await claim_due(database, FRESH, CLAIM)
            await claim_due(database, BACKLOG, CLAIM)
            await seconds_until_next(database, FRESH)
            taken.append((time.perf_counter() - began) * 1000)
            await transaction.rollback()
    return median(taken)


def _figures(costs: Costs, smallest: Costs, situation: str) -> list[Figure]:
    def of(what: str, name: str, unit: str, goal: Goal) -> Figure:
        value, least = getattr(costs, name), getattr(smallest, name)
        beside = None if costs is smallest else Beside("beside the fewest", least)
        return Figure(f"{situation}: {what}", value, unit, beside, None if beside is None else goal)

    slower, larger = Goal(at_least=1 / GOAL), Goal(at_most=GOAL)
    return [
        of("a claim of 100", "claim_ms", "ms", larger),
        of("firing", "fired_per_second", "jobs/s", slower),
        of("ingest", "stored_per_second", "requests/s", slower),
        of("producer's memory", "producer_mb", "MB", larger),
        of("consumer's memory", "consumer_mb", "MB", larger),
    ]
