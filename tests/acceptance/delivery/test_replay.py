"""`duebell deliveries replay`, as an operator runs it."""

import json
import os
import pty
import subprocess
import sys
from datetime import timedelta
from typing import Any

from delivery.store.replay import ReplayFilter, select_failed
from tests.support.application import Application
from tests.support.delivery_rows import wait_for_deliveries, wait_for_delivery
from tests.support.due_events import a_due, publish_due
from tests.support.eventually import PATIENCE
from tests.support.receiver import Call, a_receiver, answering
from tests.support.services import ROOT, running_delivery
from tests.support.stores import Site


def run_replay(site: Site, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cli", "deliveries", "replay", *arguments],
        cwd=ROOT,
        env={"DATABASE_URL": site.database_url, "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def run_on_a_terminal(site: Site, answer: str, *arguments: str) -> str:
    """What a person would see."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "deliveries", "replay", *arguments],
        cwd=ROOT,
        env={"DATABASE_URL": site.database_url, "COLUMNS": "200"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    os.write(main, answer.encode())
    seen = b""
    try:
        while chunk := os.read(main, 65536):
            seen += chunk
    except OSError:
        pass  # the other end is closed
    os.close(main)
    process.wait(PATIENCE)
    return seen.decode()


def ids(result: "subprocess.CompletedProcess[str]") -> set[str]:
    assert result.returncode == 0, result.stderr
    return {one["job_id"] for one in json.loads(result.stdout)["deliveries"]}


async def test_failed_deliveries_are_tried_again_under_the_same_key(
    site: Site, app: Application, database: Any
) -> None:
    statuses = {"now": 404}

    async def as_told(call: Call) -> Any:
        return await answering(statuses["now"] if "good" not in call.content["id"] else 200)(call)

    async with a_receiver(as_told) as receiver, running_delivery(site):
        dues = {job_id: a_due(job_id, receiver.url) for job_id in ("tea", "pot", "cup", "good")}
        await publish_due(app, *dues.values(), a_due("inside", "http://10.0.0.1/"))
        await wait_for_deliveries(database, 4, "FAILED")
        await wait_for_deliveries(database, 1, "COMPLETED")

        tea = await database.fetchrow("select * from deliveries where job_id = 'tea'")
        dry_run = run_replay(site, "--dry-run", "--reason", "http_4*", "--from", "2020-01-01T00:00:00Z")
        assert ids(dry_run) == {"tea", "pot", "cup"}
        assert await database.fetchval("select count(*) from deliveries") == 5, "a dry run changes nothing"
        for wanted, found in {
            ReplayFilter(reason="http_404"): {"tea", "pot", "cup"},
            ReplayFilter(reason="http*", job_ids=("pot", "good")): {"pot"},
            ReplayFilter(reason="*"): {"tea", "pot", "cup", "inside"},
            ReplayFilter(reason="httpX404"): set(),  # _ and % mean themselves
            ReplayFilter(delivery_ids=(tea["id"],)): {"tea"},
            ReplayFilter(since=tea["finished_at"] + timedelta(hours=1)): set(),
            ReplayFilter(until=tea["finished_at"] - timedelta(hours=1)): set(),
        }.items():
            assert {failed.job_id for failed in await select_failed(database, wanted, 10)} == found, wanted
        assert len(await select_failed(database, ReplayFilter(reason="*"), limit=2)) == 2

        refused = run_replay(site, "--job", "tea")
        assert refused.returncode == 1
        assert "calls the webhooks of 1 failed deliveries again: say --yes to do it" in refused.stderr

        seen = run_on_a_terminal(site, "n\n", "--job", "tea")
        assert "http_404" in seen
        assert "Go on? [y/N]" in seen
        assert await database.fetchval("select count(*) from deliveries") == 5

        statuses["now"] = 200
        assert "1 replayed" in run_on_a_terminal(site, "y\n", "--job", "tea")
        replayed = run_replay(site, "--yes", "--reason", "http_404")
        assert ids(replayed) == {"pot", "cup"}
        await wait_for_deliveries(database, 4, "COMPLETED")
        assert run_replay(site, "--yes", "--reason", "http_404").returncode == 1, "each is replayed once"

        for job_id in ("tea", "pot", "cup"):
            row = await wait_for_delivery(database, job_id, "COMPLETED")
            assert row["idempotency_key"] == dues[job_id]["idempotency_key"]
            assert await database.fetchval("select status from deliveries where id = $1", row["replay_of"]) == "FAILED"
            assert receiver.keys[row["idempotency_key"]] == 2
        assert await database.fetchrow("select * from deliveries where id = $1", tea["id"]) == tea


def test_it_says_what_it_needs() -> None:
    nowhere = Site("postgresql://u:p@127.0.0.1:1/d", "amqp://127.0.0.1:1/", "")
    nothing = run_replay(nowhere)
    assert nothing.returncode == 2
    assert "say which" in nothing.stderr
    naive = run_replay(nowhere, "--from", "2026-07-10T09:00:00")
    assert "needs an offset" in naive.stderr
    unreachable = run_replay(nowhere, "--job", "x")
    assert unreachable.returncode == 3
    assert "cannot reach the database" in unreachable.stderr
