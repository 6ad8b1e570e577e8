"""An id that has ended lives again with a higher revision: in the same row, from the beginning, and with other keys."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest

from consumer.commands.merge import cut_into_steps
from consumer.store.jobs import APPLY_REQUESTS, apply_requests
from shared.contract.fields import idempotency_key
from shared.postgres.pool import Connection
from tests.support.application import Application
from tests.support.builders import NOON, a_request, a_schedule, in_seconds
from tests.support.job_rows import insert_due, read_job, wait_for_status
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site
from tests.support.trigger_rows import wait_until_fired

END = "update jobs set status = $1, next_run_at = null, finished_at = now(), sequence = 4, last_due_at = now()"


@pytest.mark.parametrize("status", ["done", "cancelled"])
async def test_a_new_life_begins_in_the_same_row_with_everything_of_its_request(
    site: Site, app: Application, database: Any, status: str
) -> None:
    async with running_consumer(site):
        await app.request(a_request(payload="old", topic="old", webhook={"url": "http://old.example"}))
        await database.execute("update jobs set trigger_sequence = 3, created_at = now() - interval '1 day'")
        await database.execute(END, status)
        before = await read_job(database, "job-1")
        reply = await app.request(a_request(payload="new", topic="new", revision=2))
        assert (reply["outcome"], reply["next_run_at"], reply["errors"]) == ("accepted", "2030-06-01T12:00:00Z", [])
        assert reply["upcoming"] == ["2030-06-01T12:00:00Z"]
        after = await read_job(database, "job-1")
    fields = {
        "status": "pending", "life": 2, "revision": 2, "payload": '"new"', "topic": "new", "webhook": None,
        "next_run_at": NOON, "sequence": 0, "last_due_at": None, "finished_at": None, "retry_at": None, "refusals": 0,
        "trigger_sequence": 3,
    }  # fmt: skip
    assert {name: after[name] for name in fields} == fields
    assert after["created_at"] > before["created_at"] + timedelta(hours=23)
    assert after["version"] > before["version"]


async def test_each_life_of_an_id_is_fired_with_keys_and_numbers_of_its_own(
    site: Site, app: Application, database: Any
) -> None:
    """All lives are due at the same moment: only the life tells their keys apart."""
    at = in_seconds(0)
    async with running_consumer(site), running_producer(site):
        for revision in (1, 2, 3):
            assert (await app.request(a_request(at=at, revision=revision)))["outcome"] == "accepted"
            await app.hears(revision)
            await wait_for_status(database, "job-1", "done")
    events = [event.content for event in app.heard]
    assert [event["sequence"] for event in events] == [1, 1, 1]
    due_at = events[0]["due_at"]
    keys = [idempotency_key("job-1", due_at, "default", life=life) for life in (1, 2, 3)]
    assert [event["idempotency_key"] for event in events] == keys
    assert len(set(keys)) == 3


async def test_the_life_after_a_mark_is_the_first_one(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site):
        await app.cancel("job-1", revision=5)
        assert (await read_job(database, "job-1"))["life"] == 0
        assert (await app.request(a_request(revision=5)))["outcome"] == "duplicate"
        assert (await app.request(a_request(revision=6)))["outcome"] == "accepted"
        assert (await read_job(database, "job-1"))["life"] == 1


async def test_a_cancel_without_a_revision_closes_the_revision_that_is_there(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        await app.cancel("overtaken")
        assert (await app.request(a_request(id="overtaken")))["outcome"] == "duplicate"
        assert (await app.request(a_request(id="overtaken", revision=2)))["outcome"] == "accepted"
        await app.request(a_request(revision=7))
        assert (await app.cancel("job-1"))["outcome"] == "cancelled"
        assert (await app.request(a_request(revision=7)))["outcome"] == "duplicate"
        assert (await app.request(a_request(revision=8)))["outcome"] == "accepted"
        assert (await read_job(database, "job-1"))["life"] == 2


async def test_a_late_request_of_a_closed_revision_stays_out(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site):
        for job_id, status in (("cancelled", "cancelled"), ("done", "done")):
            await app.request(a_request(id=job_id))
            await database.execute(f"{END} where id = $2", status, job_id)
            reply = await app.cancel(job_id, revision=9)
            assert reply["outcome"] == {"cancelled": "cancelled", "done": "rejected"}[status]
            row = await read_job(database, job_id)
            assert (row["status"], row["revision"]) == (status, 9)
            assert (await app.request(a_request(id=job_id, revision=9)))["outcome"] == "duplicate"
            assert await read_job(database, job_id) == row
            assert (await app.request(a_request(id=job_id, revision=10)))["outcome"] == "accepted"


async def test_an_older_cancel_leaves_a_later_life_alone(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site):
        for content, key in (
            (a_request(), "schedule.request"),
            ({"id": "job-1", "revision": 2}, "schedule.cancel"),
            (a_request(revision=3), "schedule.request"),
        ):
            await app.ask(content, key=key)
        row = await read_job(database, "job-1")
        reply = await app.cancel("job-1", revision=2)
        older = "revision: the job is at revision 3 already; this cancel closes revisions up to 2"
        assert (reply["outcome"], reply["errors"]) == ("duplicate", [older])
        assert await read_job(database, "job-1") == row


async def test_a_changed_request_with_the_same_revision_learns_what_differs(site: Site, app: Application) -> None:
    first = a_request(payload={"n": 1}, webhook={"url": "http://a.example"})
    rule = {"id": "rule", "cron": "@daily"}
    async with running_consumer(site):
        await app.request(first)
        await app.request(rule)
        assert (await app.request(first))["errors"] == []
        assert (await app.request(rule))["errors"] == [], "it starts when it is made, which is later now"
        for changed, named in (
            ({**first, "topic": "x", "payload": {"n": 2}}, "topic and payload"),
            ({**first, "webhook": {"url": "http://b.example"}}, "webhook"),
            ({**first, "at": "2031-06-01T12:00:00Z"}, "moment"),
            ({**rule, "cron": "@hourly"}, "rule"),
        ):
            reply = await app.request(changed)
            wanted = f"revision: 1 is in use with another {named}; a higher revision replaces it"
            assert (reply["outcome"], reply["errors"]) == ("duplicate", [wanted])


async def test_a_pause_that_comes_again_does_not_undo_its_resume(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site):
        await app.request(a_request(revision=3))
        assert (await app.pause("job-1", revision=2))["outcome"] == "duplicate", "it speaks of an earlier revision"
        assert (await app.pause("job-1", revision=4))["outcome"] == "paused"
        again = await app.pause("job-1", revision=4)
        assert (again["outcome"], again["next_run_at"]) == ("duplicate", "2030-06-01T12:00:00Z")
        assert again["errors"] == [], "it was applied: nothing is wrong"
        assert (await app.resume("job-1", revision=5, note="back"))["outcome"] == "resumed"
        row = await read_job(database, "job-1")
        late = await app.pause("job-1", revision=4)
        assert (late["outcome"], late["errors"][0].split(":")[0]) == ("duplicate", "revision")
        assert await read_job(database, "job-1") == row
        assert (row["status"], row["pause_revision"]) == ("pending", 5)


async def test_the_triggers_that_a_cancel_dropped_are_not_fired_in_the_next_life(
    site: Site, app: Application, database: Any
) -> None:
    with_its_rights = site.environment_of("consumer")["DATABASE_URL"]
    async with running_consumer(site, database_url=with_its_rights):
        for job_id in ("cancelled", "done"):
            await app.request(a_request(id=job_id))
            await app.trigger(job_id, "old")
            assert (await app.pause(job_id, revision=1))["outcome"] == "paused"
            assert (await app.resume(job_id, revision=2))["outcome"] == "resumed"
        await app.cancel("cancelled")
        await database.execute("update jobs set status='done', next_run_at=null, finished_at=now() where id = 'done'")
        for job_id in ("cancelled", "done"):
            await app.request(a_request(id=job_id, revision=2))
            await app.trigger(job_id, "new")
        rows = await database.fetch("select job_id, trigger_id, life, sequence from triggers order by 1, 2")
        assert [tuple(row) for row in rows] == [
            ("cancelled", "new", 2, 2),
            ("done", "new", 2, 2),
            ("done", "old", 1, 1),
        ]
        assert (await app.trigger("done", "old"))["outcome"] == "duplicate"
        async with running_producer(site, database_url=site.environment_of("producer")["DATABASE_URL"]):
            fired = await wait_until_fired(database, 3)
            await app.hears(3)
    asked_at = {(row["job_id"], row["trigger_id"]): row["requested_at"] for row in fired}
    lives = {("cancelled", "new"): 2, ("done", "new"): 2, ("done", "old"): 1}
    keys = {
        (job_id, trigger_id): idempotency_key(job_id, asked_at[job_id, trigger_id], "default", trigger_id, life)
        for (job_id, trigger_id), life in lives.items()
    }
    contents = [event.content for event in app.heard]
    assert {(event["id"], event["trigger_id"]): event["idempotency_key"] for event in contents} == keys


async def test_all_commands_of_several_lives_delivered_again_change_nothing(
    site: Site, app: Application, database: Any
) -> None:
    commands = [
        ("schedule.request", a_request(revision=1)),
        ("schedule.pause", {"id": "job-1", "revision": 2}),
        ("schedule.cancel", {"id": "job-1", "revision": 3}),
        ("schedule.request", a_request(revision=4, payload=4)),
        ("schedule.pause", {"id": "job-1", "revision": 5}),
        ("schedule.resume", {"id": "job-1", "revision": 6}),
    ]
    async with running_consumer(site):
        replies = [await app.ask(content, key=key) for key, content in commands]
        outcomes = [reply["outcome"] for reply in replies]
        assert outcomes == ["accepted", "paused", "cancelled", "accepted", "paused", "resumed"]
        row = await read_job(database, "job-1")
        assert (row["status"], row["life"], row["payload"]) == ("pending", 2, "4")
        for order in (commands, commands[::-1]):
            replies = [await app.ask(content, key=key) for key, content in order]
            assert [reply["outcome"] for reply in replies] == ["duplicate"] * 6
        assert await read_job(database, "job-1") == row


@dataclass(frozen=True, slots=True)
class RecordingConnection:
    """Hands statements on, and keeps them."""

    real: Any
    statements: list[str] = field(default_factory=list)

    async def fetch(self, statement: str, *arguments: object) -> Any:
        self.statements.append(statement)
        return await self.real.fetch(statement, *arguments)

    async def execute(self, statement: str, *arguments: object) -> Any:
        self.statements.append(statement)
        return await self.real.execute(statement, *arguments)


async def test_a_batch_of_plain_requests_is_one_statement_and_so_is_a_batch_of_new_lives(database: Any) -> None:
    connection = RecordingConnection(database)
    for revision in (1, 2):
        requests = [a_schedule(id=f"job-{number}", revision=revision) for number in range(50)]
        [step] = cut_into_steps(requests)
        jobs = await apply_requests(cast("Connection", connection), step.scheduling.commands)
        assert all(job.applied and job.created for job in jobs.values())
        await database.execute(END, "done")
    assert connection.statements == [APPLY_REQUESTS] * 2


async def test_the_mark_of_the_release_before_closes_the_first_revision(
    site: Site, app: Application, database: Any
) -> None:
    """A consumer of that release wrote it with revision 0 and without a life."""
    await database.execute(
        "insert into jobs (id, status, revision, topic, misfire, misfire_grace_seconds, finished_at)"
        " values ('job-1', 'cancelled', 0, 'default', 'all', 0, now())"
    )
    async with running_consumer(site):
        reply = await app.request(a_request())
        assert reply["outcome"] == "duplicate"
        assert reply["errors"][0].endswith("a revision higher than 1 uses the id again")
        assert (await app.request(a_request(revision=2)))["outcome"] == "accepted"


async def test_rows_of_the_release_before_are_claimed_and_finished(site: Site, app: Application, database: Any) -> None:
    """Its consumers insert without the new columns, and its triggers have no life."""
    await insert_due(database, 1)
    await database.execute("insert into triggers (job_id, trigger_id, sequence) select id, 'x', 1 from jobs")
    async with running_producer(site):
        await wait_until_fired(database, 1)
        row = await wait_for_status(database, "job-000001", "done")
        await app.hears(2)
    assert (row["life"], row["pause_revision"]) == (1, 0)
    keys = {event.content["idempotency_key"] for event in app.heard if "trigger_id" not in event.content}
    [due] = [event.content["due_at"] for event in app.heard if "trigger_id" not in event.content]
    assert keys == {idempotency_key("job-000001", due, "default")}
