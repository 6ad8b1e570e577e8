"""Pausing and resuming through the real services: a paused job keeps its row and its occurrences, and does not fire."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.contract.fields import format_instant
from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.eventually import eventually
from tests.support.job_rows import insert_due, read_job, wait_for_status
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site

AT = "2030-06-01T12:00:00Z"


async def test_a_paused_job_keeps_its_row_and_pausing_it_again_changes_nothing(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        await app.request(a_request(payload=1))
        before = dict(await read_job(database, "job-1"))
        assert await app.pause("job-1") == {
            "id": "job-1",
            "outcome": "paused",
            "next_run_at": AT,
            "upcoming": [],
            "errors": [],
        }
        paused = dict(await read_job(database, "job-1"))
        changed = {name for name in before if before[name] != paused[name]}
        assert changed == {"status", "version", "updated_at"}
        assert (await app.pause("job-1"))["outcome"] == "paused"
        assert dict(await read_job(database, "job-1")) == paused
        assert (await app.resume("job-1"))["outcome"] == "resumed"
        assert (await app.resume("job-1"))["outcome"] == "resumed"
        row = await read_job(database, "job-1")
        assert (row["status"], row["next_run_at"], row["version"]) == ("pending", before["next_run_at"], 3)


async def test_a_reschedule_leaves_a_paused_job_paused_and_a_cancel_cancels_it(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        await app.request(a_request())
        await app.pause("job-1")
        assert (await app.request(a_request()))["outcome"] == "duplicate"
        again = await app.request(a_request(revision=2, at="2031-01-01T00:00:00Z"))
        assert (again["outcome"], again["next_run_at"]) == ("rescheduled", "2031-01-01T00:00:00Z")
        row = await read_job(database, "job-1")
        assert (row["status"], row["revision"]) == ("paused", 2)
        assert (await app.cancel("job-1"))["outcome"] == "cancelled"
        assert (await read_job(database, "job-1"))["status"] == "cancelled"


@pytest.mark.parametrize("status", ["done", "cancelled"])
@pytest.mark.parametrize("command", ["pause", "resume"])
async def test_an_ended_job_is_neither_paused_nor_resumed(
    site: Site, app: Application, database: Any, command: str, status: str
) -> None:
    async with running_consumer(site):
        await app.request(a_request())
        await database.execute("update jobs set status = $1, next_run_at = null, finished_at = now()", status)
        row = await read_job(database, "job-1")
        reply = await app.ask({"id": "job-1"}, key=f"schedule.{command}")
        assert (reply["outcome"], reply["errors"]) == ("rejected", [f"id: the job is {status}"])
        assert await read_job(database, "job-1") == row
        assert await app.count(site.names.parked) == 0


@pytest.mark.parametrize("command", ["pause", "resume", "trigger"])
async def test_a_command_that_overtook_its_request_is_rejected_and_parked(
    site: Site, app: Application, database: Any, command: str
) -> None:
    content = {"id": "job-1"} | ({"trigger_id": "x"} if command == "trigger" else {})
    async with running_consumer(site):
        reply = await app.ask(content, key=f"schedule.{command}")
        assert (reply["outcome"], reply["errors"]) == ("rejected", ["id: there is no such job"])
        [parked] = await app.parked(1)
        assert parked.headers["duebell-routing-key"] == f"schedule.{command}"
        assert await database.fetchval("select count(*) from jobs") == 0
        assert (await app.request(a_request()))["outcome"] == "accepted", "the refused command left no trace"


async def test_a_paused_job_does_not_fire_until_it_is_resumed(
    site: Site, app: Application, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer does not poll in this test: the resume itself wakes it."""
    monkeypatch.setattr("producer.lanes.PRODUCER_POLL_SECONDS", 3600.0)
    async with running_consumer(site):
        await app.request(a_request(id="paused", at=in_seconds(2)))
        await app.pause("paused")

        async def its_moment_has_passed() -> bool:
            return bool(await database.fetchval("select next_run_at < now() - interval '1 second' from jobs"))

        await eventually(its_moment_has_passed)
        async with running_producer(site):
            for number in range(3):  # the first may be found by the claim at the start, before LISTEN
                await app.request(a_request(id=f"other-{number}", at=in_seconds(0)))
                await app.hears(number + 1)
            assert {event.content["id"][:5] for event in app.heard} == {"other"}
            assert (await read_job(database, "paused"))["sequence"] == 0
            assert (await app.resume("paused"))["outcome"] == "resumed"
            event = (await app.hears(4))[-1]
            assert (event.content["id"], event.content["sequence"]) == ("paused", 1)


@pytest.mark.parametrize(("policy", "fired"), [("all", 10), ("latest", 2), ("skip", 1)])
async def test_resuming_applies_the_misfire_policy_to_missed_occurrences(
    site: Site, app: Application, database: Any, policy: str, fired: int
) -> None:
    """Ten occurrences fell due during the pause, the last one half a minute ago: within the grace of a minute."""
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=9, seconds=30)
    rule = {"id": "rule", "rrule": "FREQ=MINUTELY", "start_at": format_instant(start), "misfire": policy}
    async with running_consumer(site):
        await app.request(rule)
        await app.pause("rule")
        async with running_producer(site):
            await app.resume("rule")
            await app.hears(fired)

            async def caught_up() -> Any:
                row = await read_job(database, "rule")
                assert row["next_run_at"] == start + timedelta(minutes=10)
                return row

            assert (await eventually(caught_up))["sequence"] == len(app.heard) == fired


async def test_a_refused_job_can_be_paused_and_has_no_refusals_when_resumed(
    site: Site, app: Application, database: Any
) -> None:
    await insert_due(database, 1)
    await database.execute("update jobs set retry_at = now() + interval '1 hour', refusals = 7")
    async with running_consumer(site), running_producer(site):
        await app.pause("job-000001")
        row = await read_job(database, "job-000001")
        assert (row["retry_at"], row["refusals"]) == (None, 0)
        await app.resume("job-000001")
        await wait_for_status(database, "job-000001", "done")
        assert len(await app.hears(1)) == 1


async def test_of_pauses_and_resumes_in_one_batch_the_last_counts(site: Site, app: Application, database: Any) -> None:
    await app.send(a_request(id="a"))
    await app.send(a_request(id="b"))
    for command in ("pause", "resume", "pause"):
        await app.send({"id": "a"}, key=f"schedule.{command}")
    asked = [await app.send({"id": "b"}, key=f"schedule.{command}", reply=True) for command in ("pause", "resume")]
    async with running_consumer(site):
        assert [(await app.reply(one))["outcome"] for one in asked] == ["paused", "resumed"]
        await wait_for_status(database, "a", "paused")
        await wait_for_status(database, "b", "pending")
