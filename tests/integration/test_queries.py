"""ScheduleQuery: an application asks how a job stands, and when it rings next."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any
from unittest.mock import ANY

from consumer.store.queries import READ_HISTORY
from stack.ports import free_port
from tests.support.application import Application
from tests.support.builders import a_request, a_rule_request, in_seconds
from tests.support.eventually import eventually
from tests.support.metrics import Metrics
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site

OF_A_QUERY = {"status", "revision", "topic", "labels", "sequence", "last_due_at", "history"}


async def test_a_query_says_how_a_job_stands_through_its_life(site: Site, app: Application) -> None:
    async with running_consumer(site), running_producer(site):
        await app.request(a_rule_request(topic="a.b", revision=3))
        assert await app.query("job-1") == {
            "id": "job-1",
            "outcome": "found",
            "status": "pending",
            "revision": 3,
            "topic": "a.b",
            "labels": None,
            "sequence": 0,
            "last_due_at": None,
            "next_run_at": "2030-06-01T12:00:00Z",
            "upcoming": ["2030-06-01T12:00:00Z", "2030-06-02T12:00:00Z", "2030-06-03T12:00:00Z"],
            "history": [
                {
                    "at": ANY,
                    "what": "accepted",
                    "life": 1,
                    "revision": 3,
                    "due_at": "2030-06-01T12:00:00Z",
                    "details": {"topic": "a.b", "rule": ANY},
                }
            ],
            "errors": [],
        }
        await app.pause("job-1")
        paused = await app.query("job-1", upcoming=1)
        assert (paused["status"], paused["upcoming"]) == ("paused", ["2030-06-01T12:00:00Z"])
        await app.cancel("job-1", revision=7)
        cancelled = await app.query("job-1")
        assert (cancelled["status"], cancelled["revision"]) == ("cancelled", 7)
        assert (cancelled["next_run_at"], cancelled["upcoming"]) == (None, [])
        await app.request(a_request(revision=8, at=in_seconds(-1)))
        [event] = await app.hears(1)

        async def it_is_done() -> dict[str, Any] | None:
            found = await app.query("job-1")
            return found if found["status"] == "done" else None

        done = await eventually(it_is_done) or {}
        assert (done["sequence"], done["last_due_at"]) == (1, event.content["due_at"])
        assert (done["revision"], done["next_run_at"], done["upcoming"]) == (8, None, [])


async def test_a_query_has_as_many_instants_as_it_asks_for_and_a_rule_has(site: Site, app: Application) -> None:
    async with running_consumer(site):
        await app.request(a_rule_request())
        assert (await app.query("job-1", upcoming=0))["upcoming"] == []
        twenty = (await app.query("job-1", upcoming=20))["upcoming"]
        assert twenty == [f"2030-06-{day:02}T12:00:00Z" for day in range(1, 21)]
        await app.request(a_rule_request(id="job-2", rrule="FREQ=DAILY;COUNT=4"))
        assert len((await app.query("job-2", upcoming=20))["upcoming"]) == 4
        await app.request(a_request(id="job-3"))
        assert (await app.query("job-3", upcoming=20))["upcoming"] == ["2030-06-01T12:00:00Z"]


async def test_a_query_has_the_newest_of_the_history_as_many_as_it_asks_for(
    site: Site, app: Application, database: Any
) -> None:
    """Entries of this release, and one of a newer release that has other words."""
    async with running_consumer(site):
        await app.request(a_request())
        await app.pause("job-1", note="holidays")
        await app.resume("job-1")
        await app.cancel("job-1")
        await database.execute("insert into history (job_id, what) values ('job-1', 'forgotten'), ('other', 'fired')")
        replies = await asyncio.gather(*(app.query("job-1", history=number) for number in (0, 2, 50)))
        assert [[entry["what"] for entry in reply["history"]] for reply in replies] == [
            [],
            ["forgotten", "cancelled"],
            ["forgotten", "cancelled", "resumed", "paused", "accepted"],
        ]
        [_, cancelled, _, paused, _] = replies[2]["history"]
        assert cancelled.keys() == {"at", "what", "life", "revision", "due_at"}
        assert paused["note"] == "holidays"


async def test_the_history_of_an_id_is_read_along_the_index_without_a_sort(site: Site, database: Any) -> None:
    await database.execute(
        "insert into history (job_id, what) select 'job-' || n % 1000, 'fired' from generate_series(1, 100000) as n"
    )
    await database.execute("analyze history")
    statement = READ_HISTORY.replace("$1", "'{job-1,job-2}'").replace("$2", "'{10,20}'")
    plan = json.dumps(json.loads(await database.fetchval(f"explain (analyze, format json) {statement}")))
    today = f"history_{datetime.now(UTC):%Y%m%d}"
    assert f'"Index Name": "{today}_job_id_at_idx"' in plan
    assert '"Node Type": "Sort"' not in plan
    assert len(await database.fetch(READ_HISTORY, ["job-1", "job-2", "none"], [10, 20, 5])) == 30


async def test_an_id_without_a_job_is_unknown_and_a_cancel_that_came_first_is_named(
    site: Site, app: Application
) -> None:
    async with running_consumer(site):
        reply = await app.query("job-1")
        assert (reply["outcome"], reply["errors"]) == ("unknown", ["id: there is no such job"])
        assert not reply.keys() & OF_A_QUERY
        await app.cancel("job-1", revision=4)
        reply = await app.query("job-1")
        assert reply["outcome"] == "unknown"
        assert reply["errors"] == ["id: there is no such job; a cancel has closed its revisions up to 4"]


async def test_no_other_reply_has_the_fields_of_a_query(site: Site, app: Application) -> None:
    async with running_consumer(site):
        for reply in (await app.request(a_request()), await app.request(a_request()), await app.cancel("job-1")):
            assert reply.keys() == {"id", "outcome", "next_run_at", "upcoming", "errors"}


async def test_a_query_comes_after_earlier_commands_of_its_batch_and_before_later_ones(
    site: Site, app: Application
) -> None:
    commands = [
        ("schedule.query", {"id": "job-1"}),
        ("schedule.request", a_request()),
        ("schedule.query", {"id": "job-1"}),
        ("schedule.pause", {"id": "job-1"}),
        ("schedule.query", {"id": "job-1"}),
        ("schedule.cancel", {"id": "job-1"}),
        ("schedule.query", {"id": "job-1"}),
    ]
    sent = [await app.send(content, key=key, reply=True) for key, content in commands]
    async with running_consumer(site):  # it finds all of them, and takes them as one batch
        replies = [await app.reply(correlation_id) for correlation_id in sent]
    states = [(reply["outcome"], reply.get("status")) for reply in replies[::2]]
    assert states == [("unknown", None), ("found", "pending"), ("found", "paused"), ("found", "cancelled")]


async def test_a_query_without_an_address_for_its_answer_is_counted_and_has_no_effect(
    site: Site, app: Application
) -> None:
    port = free_port()
    async with running_consumer(site, metrics_port=port):
        await app.request(a_request())
        await app.send({"id": "job-1"}, key="schedule.query")
        assert (await app.query("job-1"))["outcome"] == "found"  # by then the first is acknowledged
        for outcome in ("accepted", "found", "rejected"):
            assert await Metrics(port).value("commands_total", outcome=outcome) == 1
    assert await app.count(site.names.inbox) == await app.count(site.names.parked) == 0


async def test_a_query_that_is_refused_is_answered_and_not_parked(site: Site, app: Application) -> None:
    async with running_consumer(site):
        reply = await app.query("job-1", history=51)
        assert (reply["id"], reply["outcome"]) == ("job-1", "rejected")
        assert reply["errors"][0].startswith("history: ")
        assert await app.count(site.names.parked) == 0
