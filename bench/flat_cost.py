"""The same work beside more and more jobs: claim, firing, ingest and memory must not follow the size of the table.

The few stay at hand in a database of their own, and every larger size takes turns with them: what the machine does
meanwhile meets both, so that the ratio is of the tables alone.
"""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from statistics import median

from bench.figures import Beside, Cost, Figure, Goal, middle
from bench.filling import add_done, add_due, add_later
from bench.firing import fire_with
from bench.ingest import store_with
from bench.plan import Plan
from bench.rig import Rig
from producer.store.lanes import DUE_NOW, OVERDUE, PRODUCER_PLANNER_SETTINGS, claim_due, look_ahead

CLAIM = 100
CLAIMS = 50
GOAL = 1.5
FEWEST = "fewest"


@dataclass(frozen=True, slots=True)
class Costs:
    claim_ms: float
    fired_per_second: float
    stored_per_second: float
    firing: Cost
    storing: Cost


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    await rig.empty()
    fewest, *larger = plan.beside_pending
    async with rig.database() as database:
        await add_later(database, fewest, "later-0-")
    async with rig.copied(FEWEST) as few:
        there = fewest
        for pending in larger:
            async with rig.database() as database:
                await add_later(database, pending - there, f"later-{pending}-")
            there = pending
            for figure in await _side_by_side(few, rig, plan, f"{pending:,} pending", f"{fewest:,} pending"):
                yield figure
        async with rig.database() as database:
            await add_done(database, plan.beside_done)
        situation = f"{there:,} pending, {plan.beside_done:,} done"
        for figure in await _side_by_side(few, rig, plan, situation, f"{fewest:,} pending"):
            yield figure


async def _side_by_side(few: Rig, many: Rig, plan: Plan, situation: str, beside: str) -> list[Figure]:
    of_few: list[Costs] = []
    of_many: list[Costs] = []
    for number in range(plan.flat_takes):
        turns = [(few, of_few), (many, of_many)]
        # The table that comes second in one round comes first in the next.
        for rig, takes in turns if number % 2 == 0 else reversed(turns):
            takes.append(await _measure(rig, plan.flat_jobs, f"{situation}-{number}-"))
    return _figures(situation, _best(of_many), _best(of_few), beside)


async def _measure(rig: Rig, jobs: int, name: str) -> Costs:
    claim_ms = await _claim_ms(rig, f"claim-{name}")
    with rig.service("producer") as producer:
        await rig.purge()
        fired, firing = await fire_with(rig, producer, jobs, name=f"due-{name}")
    with rig.service("consumer") as consumer:
        stored, storing = await store_with(rig, consumer, jobs, name=f"asked-{name}")
    return Costs(claim_ms, fired, stored, firing, storing)


async def _claim_ms(rig: Rig, name: str) -> float:
    """Measure a producer's look at the table: a claim in each lane, and the look ahead. It is rolled back, so each is
    the same.
    """
    taken = []
    async with rig.database() as database:
        await add_due(database, CLAIM, name)
        for setting, value in PRODUCER_PLANNER_SETTINGS.items():
            await database.execute(f"set {setting} = {value}")
        for _ in range(CLAIMS):
            transaction = database.transaction()
            await transaction.start()
            began = time.perf_counter()
            await claim_due(database, DUE_NOW, CLAIM)
            await claim_due(database, OVERDUE, CLAIM)
            await look_ahead(database, DUE_NOW)
            taken.append((time.perf_counter() - began) * 1000)
            await transaction.rollback()
    return median(taken)


def _best(takes: Sequence[Costs]) -> Costs:
    """Return the best of each rate: a moment in which the machine did something else says nothing about the table."""
    return Costs(
        min(take.claim_ms for take in takes),
        max(take.fired_per_second for take in takes),
        max(take.stored_per_second for take in takes),
        middle([take.firing for take in takes]),
        middle([take.storing for take in takes]),
    )


def _figures(situation: str, costs: Costs, fewest: Costs, beside: str) -> list[Figure]:
    def of(what: str, unit: str, value: float, least: float, cost: Cost | None = None) -> Figure:
        goal = Goal(at_least=1 / GOAL) if unit.endswith("/s") else Goal(at_most=GOAL)
        return Figure(f"{situation}: {what}", value, unit, Beside(beside, least), goal, cost)

    return [
        of("a claim of 100", "ms", costs.claim_ms, fewest.claim_ms),
        of("firing", "jobs/s", costs.fired_per_second, fewest.fired_per_second, costs.firing),
        of("ingest", "requests/s", costs.stored_per_second, fewest.stored_per_second, costs.storing),
        of("producer's memory", "MB", costs.firing.resident_mb, fewest.firing.resident_mb),
        of("consumer's memory", "MB", costs.storing.resident_mb, fewest.storing.resident_mb),
    ]
