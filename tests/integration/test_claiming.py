"""Tests claims: any number of producers share the due rows, the cost does not grow, and commands never half-apply."""

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from producer.store.lanes import (
    CLAIM_DUE_NOW,
    CLAIM_OVERDUE,
    CLAIM_RETRY,
    DUE_NOW,
    NEXT_DUE_JOB,
    NEXT_RETRY,
    OVERDUE,
    PRODUCER_PLANNER_SETTINGS,
    claim_due,
)
from producer.store.retention import DELETE_FINISHED_JOBS
from producer.store.triggers import CLAIM_TRIGGERS, NEXT_TRIGGER
from tests.support.application import Application
from tests.support.builders import a_request
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import (
    a_session_waits_for_a_lock,
    insert_due,
    read_job,
    wait_for_status,
    wait_until_none_pending,
)
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site


async def test_ten_due_rows_and_three_claimers_at_once(site: Site, database: Any) -> None:
    """Each row is claimed by exactly one of them, and no row is missed."""
    await insert_due(database, 10)
    claimers = [await asyncpg.connect(site.database_url, timeout=PATIENCE) for _ in range(3)]
    transactions = [claimer.transaction() for claimer in claimers]
    try:
        for transaction in transactions:
            await transaction.start()
        claims = await asyncio.gather(*(claim_due(claimer, DUE_NOW, 4) for claimer in claimers))
        ids = [job.id for claim in claims if claim for job in claim.rows]
        assert sorted(ids) == [f"job-{number:06}" for number in range(1, 11)]
        assert await claim_due(database, DUE_NOW, 10) is None, "all are taken"
    finally:
        for transaction in transactions:
            await transaction.rollback()
        for claimer in claimers:
            await claimer.close(timeout=5)


async def test_three_producers_fire_every_job_exactly_once(site: Site, app: Application, database: Any) -> None:
    async with AsyncExitStack() as producers:
        for _ in range(3):
            await producers.enter_async_context(running_producer(site, batch_size=20))
        await insert_due(database, 1000, late=timedelta(seconds=5))
        await wait_until_none_pending(database)
        await app.hears(1000)
    fired = Counter(event.content["id"] for event in app.heard)
    assert len(fired) == 1000
    assert set(fired.values()) == {1}


@pytest.mark.parametrize(
    ("statement", "index"),
    [(CLAIM_DUE_NOW, "jobs_due"), (CLAIM_OVERDUE, "jobs_due"), (CLAIM_RETRY, "jobs_refused")],
    ids=["due now", "overdue", "retry"],
)
async def test_a_claim_is_an_index_scan_without_a_sort(database: Any, statement: str, index: str) -> None:
    await _fill(database)
    plan = await _explain(database, statement, "null::timestamptz", "500")
    nodes = [node for node in _nodes(plan) if node["Node Type"] not in {"ModifyTable", "Result"}]  # the table lock
    assert [node["Node Type"] for node in nodes] == ["Limit", "LockRows", "Index Scan"]
    assert nodes[-1]["Index Name"] == index
    assert "coalesce" in nodes[-1]["Index Cond"].lower() or "now()" in nodes[-1]["Index Cond"]


async def test_a_claim_of_triggers_walks_its_index_and_finds_their_jobs_by_key(database: Any) -> None:
    await _fill(database)
    plan = await _explain(database, CLAIM_TRIGGERS, "null::timestamptz", "500")
    [claim] = [node for node in _nodes(plan) if node.get("Subplan Name") == "CTE due"]
    nodes = list(_nodes(claim))
    assert [node["Node Type"] for node in nodes] == ["Limit", "LockRows", "Nested Loop", "Index Scan", "Index Scan"]
    assert [node["Index Name"] for node in nodes[3:]] == ["triggers_due", "jobs_pkey"]
    assert "now()" in nodes[3]["Index Cond"]
    [dropped] = [node for node in _nodes(plan) if node.get("Subplan Name") == "CTE dropped"]
    assert not any("Seq" in node["Node Type"] for node in _nodes(dropped))


@pytest.mark.parametrize(
    ("statement", "index"),
    [(NEXT_DUE_JOB, "jobs_due"), (NEXT_RETRY, "jobs_refused")],
)
async def test_looking_ahead_reads_one_row_of_the_index(database: Any, statement: str, index: str) -> None:
    await _fill(database)
    nodes = list(_nodes(await _explain(database, statement, "null::timestamptz")))
    assert nodes[-1]["Index Name"] == index
    assert any(node["Node Type"] == "Limit" for node in nodes)
    assert not any("Sort" in node["Node Type"] or "Seq" in node["Node Type"] for node in nodes)


async def test_looking_ahead_for_triggers_reads_one_row_of_the_index_on_either_side_of_now(database: Any) -> None:
    await _fill(database)
    nodes = list(_nodes(await _explain(database, NEXT_TRIGGER, "null::timestamptz")))
    scans = [node["Index Name"] for node in nodes if node["Node Type"].startswith("Index")]
    assert scans == ["triggers_due", "jobs_pkey", "triggers_due"]
    assert len([node for node in nodes if node["Node Type"] == "Limit"]) == 2
    assert not any("Sort" in node["Node Type"] or "Seq" in node["Node Type"] for node in nodes)


async def test_retention_walks_its_index_and_finds_triggers_and_rows_by_key(database: Any) -> None:
    await _fill(database)
    # Many jobs are old enough to be deleted: the case in which the planner prefers to read all waiting triggers.
    plan = await _explain(database, DELETE_FINISHED_JOBS, "interval '-1 hour'", "1000")
    scans = [node for node in _nodes(plan) if "Scan" in node["Node Type"]]
    assert {node.get("Index Name") for node in scans} - {None} == {"jobs_finished", "triggers_pkey", "jobs_pkey"}
    assert not any("Seq" in node["Node Type"] or "Sort" in node["Node Type"] for node in _nodes(plan))
    [triggers] = [node for node in scans if node.get("Relation Name") == "triggers"]
    assert "job_id = " in triggers["Index Cond"]


async def _fill(database: Any) -> None:
    """Fill the table as it is in production: many jobs pending later, many done, a few due."""
    await insert_due(database, 20_000, prefix="later-", late=timedelta(days=-30))
    await insert_due(database, 500, prefix="due-now-", late=timedelta(seconds=1))
    await insert_due(database, 500, prefix="old-", late=timedelta(hours=1))
    await insert_due(database, 500, prefix="refused-", late=timedelta(hours=1))
    await database.execute("update jobs set retry_at = now() where id like 'refused-%'")
    await insert_due(database, 20_000, prefix="done-", late=timedelta(days=1))
    await database.execute("update jobs set status='done', next_run_at=null, finished_at=now() where id like 'done-%'")
    await database.execute(
        "insert into triggers (job_id, trigger_id, sequence, fired_at)"
        " select id, 'x', 1, case when id like 'later-%' then now() end from jobs"
    )
    await database.execute("vacuum analyze jobs, triggers")


async def _explain(database: Any, statement: str, *parameters: str) -> dict[str, Any]:
    for number, value in enumerate(parameters, start=1):
        statement = statement.replace(f"${number}", value)
    for setting, value in PRODUCER_PLANNER_SETTINGS.items():
        await database.execute(f"set {setting} = {value}")
    explained = json.loads(await database.fetchval(f"explain (format json) {statement}"))
    root: dict[str, Any] = explained[0]["Plan"]
    return root


def _nodes(plan: dict[str, Any]) -> Any:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


class HeldClaim:
    """Stands for a producer that has claimed a row and not settled it yet."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.transaction = connection.transaction()

    async def take(self) -> None:
        await self.transaction.start()
        claim = await claim_due(self.connection, OVERDUE, 10)
        assert claim is not None
        assert [job.id for job in claim.rows] == ["job-000001"]

    async def finish(self, status: str) -> None:
        """Settle the row as a producer does: it is done, or pending with a next run."""
        await self.connection.execute(
            "update jobs set status = $1, next_run_at = case when $1 = 'pending' then now() + interval '1 day' end,"
            " finished_at = case when $1 = 'done' then now() end, sequence = sequence + 1, version = version + 1",
            status,
        )
        await self.transaction.commit()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("cancel", "came late"),
        ("pause", "the job is done"),
        ("resume", "the job is done"),
        ("trigger", "the job is done"),
    ],
)
async def test_a_command_for_a_row_being_fired_waits_and_learns_that_it_came_late(
    site: Site, app: Application, database: Any, command: str, reason: str
) -> None:
    await insert_due(database, 1, late=timedelta(hours=1))
    claim = HeldClaim(database)
    await claim.take()
    watcher = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        async with running_consumer(site):
            asked = await _send(app, command)
            await eventually(lambda: a_session_waits_for_a_lock(watcher))
            await claim.finish("done")
            reply = await app.reply(asked)
            assert reply["outcome"] == "rejected"
            assert reason in reply["errors"][0]
            assert (await read_job(watcher, "job-000001"))["status"] == "done"
    finally:
        await watcher.close(timeout=5)


async def test_a_reschedule_of_a_row_being_fired_waits_and_begins_a_new_life(
    site: Site, app: Application, database: Any
) -> None:
    await insert_due(database, 1, late=timedelta(hours=1))
    claim = HeldClaim(database)
    await claim.take()
    watcher = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        async with running_consumer(site):
            asked = await _send(app, "reschedule")
            await eventually(lambda: a_session_waits_for_a_lock(watcher))
            await claim.finish("done")
            assert (await app.reply(asked))["outcome"] == "accepted"
            row = await read_job(watcher, "job-000001")
            assert (row["status"], row["life"], row["sequence"]) == ("pending", 2, 0)
    finally:
        await watcher.close(timeout=5)


@pytest.mark.parametrize(
    ("command", "outcome"),
    [("cancel", "cancelled"), ("reschedule", "rescheduled"), ("pause", "paused"), ("trigger", "triggered")],
)
async def test_a_command_for_a_rule_being_fired_applies_to_what_comes_after(
    site: Site, app: Application, database: Any, command: str, outcome: str
) -> None:
    await insert_due(database, 1, late=timedelta(hours=1))
    claim = HeldClaim(database)
    await claim.take()
    watcher = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        async with running_consumer(site):
            asked = await _send(app, command)
            await eventually(lambda: a_session_waits_for_a_lock(watcher))
            await claim.finish("pending")
            assert (await app.reply(asked))["outcome"] == outcome
            row = await wait_for_status(
                watcher, "job-000001", {"cancel": "cancelled", "pause": "paused"}.get(command, "pending")
            )
            assert row["sequence"] == 1, "the firing that was in progress counts"
    finally:
        await watcher.close(timeout=5)


async def _send(app: Application, command: str) -> str:
    if command == "reschedule":
        return await app.send(a_request(id="job-000001", revision=2), reply=True)
    content = {"id": "job-000001"} | ({"trigger_id": "x"} if command == "trigger" else {})
    return await app.send(content, key=f"schedule.{command}", reply=True)


async def test_a_claimer_does_not_wait_for_a_row_that_is_being_cancelled(site: Site, database: Any) -> None:
    await insert_due(database, 2)
    other = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        async with other.transaction():
            await other.execute("update jobs set updated_at = now() where id = 'job-000001'")
            claim = await claim_due(database, DUE_NOW, 10)
            assert claim is not None
            assert [job.id for job in claim.rows] == ["job-000002"]
    finally:
        await other.close(timeout=5)
