"""Other schedulers on the same work, in the same run, one process each: how many due jobs they publish, how many they
handle among a million that are not due, and how late they are. Each is tuned as well as its documentation tells.

Their clock stops with the last handler; Duebell's stops when every event is confirmed and every row is done. Among the
million their handlers publish, as Duebell always does, and then once more do nothing.
"""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg

from bench import child
from bench.figures import Beside, Cost, Figure, Goal, middle, quantile
from bench.filling import add_later
from bench.peers import own
from bench.peers.installing import DIRECTORY, NODE, PYTHON, CannotInstall, install_node_peers, install_python_peers
from bench.peers.likenesses import add_likenesses
from bench.peers.own import Take
from bench.plan import Plan
from bench.rig import QUEUE, Rig

DRIVERS = Path(__file__).parent / "drivers"
BY_PYTHON = ("pgqueuer", "procrastinate", "apscheduler")
BY_NODE = ("pg_boss", "graphile_worker")
# Where they do nothing and Duebell publishes: less than this is a tie.
A_TIE = 1.5
# It takes everything that is due in one pass before the first handler runs, so no clock can stop it in between.
MAX_JOBS: Mapping[str, int] = {"apscheduler": 5000}


@dataclass(frozen=True, slots=True)
class Situation:
    """One situation that is measured: the jobs, and how many pending jobs are beside them."""

    jobs: int
    pending: int
    publishes: Sequence[bool]  # the kinds of handlers

    def rate(self, *, publishes: bool) -> str:
        among = f" among {self.pending:,}" if self.pending else ""
        return f"{self.jobs:,} due{among}, {'each published' if publishes else 'no-ops'}"

    @property
    def lateness(self) -> str:
        return f"late among {self.pending:,}" if self.pending else "late, idle"


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    try:
        await install_python_peers()
        await install_node_peers()
    except CannotInstall as error:
        raise child.ChildFailed(f"the peers cannot be installed: {error}") from error
    for situation in (
        Situation(plan.peer_jobs, 0, [True]),
        Situation(plan.peer_jobs_among, plan.pending, [True, False]),
    ):
        await _clear_away(rig)
        await rig.empty()
        async with rig.database() as database:
            await add_later(database, situation.pending)
        takes = [await _duebell(rig, plan, situation, 0)]
        for number, name in enumerate((*BY_PYTHON, *BY_NODE), 1):
            found = await _peer(rig, plan, situation, name)
            # Duebell again beside each of them: the machine may have changed its mind since.
            takes.append(await _duebell(rig, plan, situation, number))
            for figure in _figures(name.replace("_", "-"), found, situation, takes[-2:]):
                yield figure
        for figure in _our_figures(situation, takes):
            yield figure


async def _duebell(rig: Rig, plan: Plan, situation: Situation, number: int) -> Take:
    # Half of the rings each time: every peer has two such takes beside it.
    return await own.take(rig, situation.jobs, plan.peer_rings // 2, plan.peer_rings_seconds / 2, str(number))


async def _peer(rig: Rig, plan: Plan, situation: Situation, name: str) -> dict[str, Any]:
    """Measure a peer in a new database of its own."""
    await rig.purge()
    async with rig.database() as database:
        await database.execute(f"create database peer_{name}")
    return await _measured(rig, plan, situation, name)


async def _clear_away(rig: Rig) -> None:
    """Drop the databases, after the last measurement only: dropping one would disturb the next measurement."""
    async with rig.database() as database:
        for name in (*BY_PYTHON, *BY_NODE):
            await database.execute(f"drop database if exists peer_{name} with (force)")


async def _measured(rig: Rig, plan: Plan, situation: Situation, name: str) -> dict[str, Any]:
    url = rig.context.database_url.rpartition("/")[0] + f"/peer_{name}"
    where = {"database_url": url, "amqp_url": rig.context.amqp_url, "queue": QUEUE}
    environment = {**os.environ, "PEERS": str(DIRECTORY)}
    command = [str(NODE), str(DRIVERS / f"{name}.mjs")]
    if name in BY_PYTHON:
        command = [str(PYTHON), "-m", f"bench.peers.drivers.{name}"]
    await child.run_command(command, {**where, "step": "install"}, environment)
    if situation.pending:
        connection = await asyncpg.connect(url, timeout=10, command_timeout=300)
        try:
            await add_likenesses(connection, name, situation.pending)
        finally:
            await connection.close()
    work = {
        "step": "measure",
        "jobs": min(situation.jobs, MAX_JOBS.get(name, situation.jobs)),
        "publishes": list(situation.publishes),
        "rings": plan.peer_rings,
        "rings_seconds": plan.peer_rings_seconds,
        "patience": plan.peer_patience_seconds,
    }
    return await child.run_command(command, {**where, **work}, environment)


def _figures(peer: str, found: Mapping[str, Any], situation: Situation, beside: Sequence[Take]) -> list[Figure]:
    duebell = Beside("Duebell", sum(take.per_second for take in beside) / len(beside))
    late = [ms for take in beside for ms in take.late_ms]
    return [
        *(
            Figure(
                f"{peer}: {situation.rate(publishes=publishes)}",
                rate["per_second"],
                "jobs/s",
                duebell,
                Goal(at_most=1 if publishes else A_TIE),
                Cost(rate["cpu_ms_per_1000"], found["resident_mb"]),
                note="" if rate["handled"] >= situation.jobs else f"{rate['handled']:,} of them",
            )
            for publishes, rate in zip(situation.publishes, found["rates"], strict=True)
        ),
        *(
            Figure(
                f"{peer}: {situation.lateness}, {title}",
                quantile(found["late_ms"], share),
                "ms",
                Beside("Duebell", quantile(late, share)),
                Goal(at_least=1),
                note="" if found["heard"] == len(found["late_ms"]) else f"{found['heard']} heard; more than",
            )
            for title, share in (("p50", 0.5), ("p99", 0.99))
        ),
    ]


def _our_figures(situation: Situation, takes: Sequence[Take]) -> list[Figure]:
    rate, cost = median(take.per_second for take in takes), middle([take.cost for take in takes])
    late = [ms for take in takes for ms in take.late_ms]
    return [
        *(
            Figure(
                f"Duebell: {situation.rate(publishes=publishes)}",
                rate,
                "jobs/s",
                cost=cost,
                note="" if publishes else "publishing",
            )
            for publishes in situation.publishes
        ),
        Figure(f"Duebell: {situation.lateness}, p50", quantile(late, 0.5), "ms"),
        Figure(f"Duebell: {situation.lateness}, p99", quantile(late, 0.99), "ms"),
    ]
