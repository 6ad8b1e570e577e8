"""What the history costs a producer: the same jobs fired with HISTORY=off, changes and all, in turns, so that what else
the machine does falls on each of them. `all` writes a row for each event, in the transaction that settles it.
"""

from collections.abc import AsyncIterator
from statistics import median

from bench.figures import Beside, Cost, Figure, Goal, middle
from bench.firing import fire
from bench.plan import Plan
from bench.rig import Rig
from shared.contract.history import HistoryLevel

GOALS = {HistoryLevel.CHANGES: Goal(at_least=0.95), HistoryLevel.ALL: Goal(at_least=0.85)}


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    levels = [HistoryLevel.OFF, HistoryLevel.CHANGES, HistoryLevel.ALL]
    results: dict[HistoryLevel, list[tuple[float, Cost]]] = {level: [] for level in levels}
    for turn in range(plan.rounds):
        first = turn % len(levels)
        for level in levels[first:] + levels[:first]:
            results[level].append(await fire(rig, plan.few, history=level))
    rates = {level: median(rate for rate, _ in results[level]) for level in levels}
    costs = {level: middle([cost for _, cost in results[level]]) for level in levels}
    off = Beside("HISTORY=off", rates[HistoryLevel.OFF])
    for level in levels:
        beside = None if level is HistoryLevel.OFF else off
        yield Figure(
            f"{plan.few:,} one-shots, HISTORY={level}", rates[level], "jobs/s", beside, GOALS.get(level), costs[level]
        )
    cpu_off = Beside("HISTORY=off", _of_all_processes(costs[HistoryLevel.OFF]))
    for level in levels[1:]:
        yield Figure(f"CPU time, HISTORY={level}", _of_all_processes(costs[level]), "ms/1,000 jobs", cpu_off)


def _of_all_processes(cost: Cost) -> float:
    return cost.cpu_ms_per_1000 + (cost.postgres_ms_per_1000 or 0) + (cost.rabbitmq_ms_per_1000 or 0)
