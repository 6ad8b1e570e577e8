"""Tests commands that lock a job and change nothing: if the job comes due meanwhile, it does not wait for a poll."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from shared.postgres import wake_producers
from tests.support.application import Application
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import a_session_waits_for_a_lock, insert_due
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site

CHANGE_NOTHING = {
    "schedule.request": {"at": "2030-01-01T00:00:00Z"},
    "schedule.resume": {},
    "schedule.trigger": {"trigger_id": "known"},
}
every_command = pytest.mark.parametrize("key", list(CHANGE_NOTHING))


@every_command
async def test_a_job_that_comes_due_while_a_command_holds_it_does_not_wait_for_a_poll(
    site: Site, app: Application, database: Any, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """The command is in a batch with a second one. Another session locks the second job until the first job is late."""
    monkeypatch.setattr("producer.lanes.PRODUCER_POLL_SECONDS", 3600.0)
    await insert_due(database, 1, prefix="b-", late=timedelta(days=-1))
    await insert_due(database, 1, prefix="first-")
    watcher = await asyncpg.connect(site.database_url, timeout=PATIENCE)
    try:
        async with running_producer(site), running_consumer(site, batch_size=2, batch_wait_seconds=1):
            await app.hears(1)
            # The services are up: what is left to do before it is due takes milliseconds.
            await insert_due(database, 1, prefix="a-", late=timedelta(seconds=-5))
            await _insert_known_triggers(database)
            await wake_producers.notify(database)
            async with database.transaction():
                await database.execute("select from jobs where id = 'b-000001' for update")
                for job_id in ("a-000001", "b-000001"):
                    await app.send({"id": job_id, **CHANGE_NOTHING[key]}, key=key)
                await eventually(lambda: a_session_waits_for_a_lock(watcher))
                assert not await _is_late(watcher, "a-000001"), "it was locked too late: this shows nothing"
                await eventually(lambda: _is_late(watcher, "a-000001"))
                assert [event.content["id"] for event in app.heard] == ["first-000001"]
            await app.hears(2)
    finally:
        await watcher.close(timeout=5)


@every_command
async def test_a_command_that_changes_nothing_wakes_producers_only_for_a_job_that_is_due_about_now(
    site: Site, app: Application, database: Any, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr("shared.postgres.wake_producers.NOTIFY_WITHIN_SECONDS", 300.0)
    await insert_due(database, 1, prefix="tomorrow-", late=timedelta(days=-1))
    await insert_due(database, 1, prefix="old-", late=timedelta(hours=1))
    await insert_due(database, 1, prefix="refused-", late=timedelta(minutes=1))
    await database.execute("update jobs set retry_at = now() + interval '1 hour' where id like 'refused-%'")
    await insert_due(database, 1, prefix="paused-")
    await database.execute("update jobs set status = 'paused' where id like 'paused-%'")
    await _insert_known_triggers(database)
    heard: list[str] = []
    await database.add_listener(wake_producers.CHANNEL, lambda *_: heard.append("notified"))
    async with running_consumer(site):
        for job in ("tomorrow", "old", "refused", "paused"):
            if (job, key) != ("paused", "schedule.resume"):  # that would change the job
                await app.ask({"id": f"{job}-000001", **CHANGE_NOTHING[key]}, key=key)
        await database.execute("select 1")
        assert heard == []
        await insert_due(database, 1, prefix="soon-", late=timedelta(seconds=-150))
        await _insert_known_triggers(database)
        await app.ask({"id": "soon-000001", **CHANGE_NOTHING[key]}, key=key)

        async def is_notified() -> bool:
            return heard == ["notified"]

        await eventually(is_notified)


async def _insert_known_triggers(database: Any) -> None:
    await database.execute(
        "insert into triggers (job_id, trigger_id, sequence, fired_at) select id, 'known', 1, now() from jobs"
        " on conflict do nothing"
    )


async def _is_late(database: Any, job_id: str) -> bool:
    return bool(await database.fetchval("select next_run_at < clock_timestamp() from jobs where id = $1", job_id))
