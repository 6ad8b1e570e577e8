"""Each change of a job, and each of its occurrences, is in the history once what it tells is committed."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from shared.postgres.migrate import migrate
from shared.reading.history import HistoryWanted, list_changes
from shared.why.explain import explain
from shared.why.explanation import Cause
from shared.why.store import read_facts
from shared.why.timeline import describe_entry
from tests.support.application import Application, an_application
from tests.support.builders import in_seconds
from tests.support.eventually import eventually
from tests.support.job_rows import insert_due, wait_until_none_pending
from tests.support.receiver import a_receiver, answering
from tests.support.services import running_consumer, running_delivery, running_producer
from tests.support.stores import Site

FAR = "2031-07-10T09:00:00Z"
LATER = "2031-07-11T09:00:00Z"


async def told(database: Any, job_id: str, *columns: str) -> list[Any]:
    rows = await database.fetch("select * from history where job_id = $1 order by at", job_id)
    return [tuple(row[column] for column in columns) if len(columns) > 1 else row[columns[0]] for row in rows]


async def details(database: Any, job_id: str) -> list[Any]:
    return [json.loads(text) if text else None for text in await told(database, job_id, "details")]


async def test_what_commands_do_is_told_with_who_did_it(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site):
        await app.ask({"id": "tea", "at": FAR, "topic": "kitchen"}, app_id="sign-up")
        await app.ask({"id": "tea", "at": LATER, "topic": "kitchen", "payload": 1, "revision": 2})
        await app.ask({"id": "tea", "note": "holidays"}, key="schedule.pause", headers={"duebell-operator": "maria"})
        await app.ask({"id": "tea"}, key="schedule.pause")
        await app.ask({"id": "tea"}, key="schedule.resume")
        await app.ask({"id": "tea", "trigger_id": "now"}, key="schedule.trigger")
        await app.ask({"id": "tea", "note": "drunk"}, key="schedule.cancel", app_id="log-in")
        await app.ask({"id": "tea", "at": FAR, "revision": 2})
        await app.ask({"id": "tea", "at": FAR, "revision": 3})
    assert await told(database, "tea", "what", "life", "revision") == [
        ("accepted", 1, 1),
        ("rescheduled", 1, 2),
        ("paused", None, None),
        ("resumed", None, None),
        ("triggered", None, None),
        ("cancelled", 1, 2),
        ("duplicate", None, 2),
        ("accepted", 2, 3),
    ]
    accepted, rescheduled, paused, *_ = await database.fetch("select * from history order by at")
    assert (accepted["app_id"], accepted["by_user"]) == ("sign-up", None)
    assert accepted["due_at"] == datetime.fromisoformat(FAR)
    assert json.loads(rescheduled["details"])["changed"] == {
        "next_run_at": [FAR, LATER], "payload": "another",
    }  # fmt: skip
    assert (paused["operator"], paused["note"]) == ("maria", "holidays")
    cancelled = await database.fetchrow("select * from history where what = 'cancelled'")
    assert (cancelled["due_at"], cancelled["note"]) == (datetime.fromisoformat(LATER), "drunk")
    assert (await details(database, "tea"))[6]["errors"][0].startswith("id: the job is cancelled since ")


async def test_a_rejected_command_is_found_by_the_id_that_it_carried(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        await app.ask({"id": "tea", "at": "2031-07-10T09:00:00", "pyload": 1})
        await app.ask({"id": "nope"}, key="schedule.pause")
        await app.ask({"id": "gone", "revision": 7}, key="schedule.cancel")
        await app.ask({"id": "gone"}, key="schedule.pause")
    assert await told(database, "tea", "what") == ["rejected"]
    assert (await details(database, "tea"))[0]["errors"] == ["pyload: is not a field of this command"]
    assert await told(database, "nope", "what") == ["rejected"]
    assert await told(database, "gone", "what", "revision") == [("closed", 7), ("rejected", None)]
    late = {"errors": ["id: the job is cancelled"], "command": "pause", "parked": False}
    assert (await details(database, "gone"))[1] == late, "it is answered, and not parked"


async def test_a_word_that_a_newer_release_has_written_is_read(database: Any) -> None:
    await database.execute("insert into history (job_id, what, note) values ('tea', 'postponed', 'by a week')")
    assert [entry.what for entry in (await read_facts(database, "tea")).entries] == ["postponed"]
    page = await list_changes(database, HistoryWanted(), 10)
    assert [(change.entry.what, describe_entry(change.entry)) for change in page.changes] == [
        ("postponed", "note: by a week")
    ]


async def test_an_occurrence_is_told_when_it_is_published(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site), running_producer(site):
        await app.ask({"id": "pulse", "rrule": "FREQ=SECONDLY;COUNT=2", "start_at": in_seconds(1)})
        due = await app.hears(2)
        await wait_until_none_pending(database)
    rows = await database.fetch("select * from history where job_id = 'pulse' order by at")
    assert [row["what"] for row in rows] == ["accepted", "fired", "fired", "ended"]
    for row, event in zip(rows[1:3], due, strict=True):
        assert (row["sequence"], row["due_at"]) == (
            event.content["sequence"],
            datetime.fromisoformat(event.content["due_at"]),
        )
        assert row["due_at"] <= row["at"]


async def test_a_firing_that_is_rolled_back_is_not_told(site: Site, app: Application, database: Any) -> None:
    await database.execute("""
        create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
        create constraint trigger refuse after update on jobs deferrable initially deferred
            for each row execute function refuse()""")
    async with running_producer(site):
        await insert_due(database, 1)
        await app.hears(2)  # it is published again and again, and never committed
        assert await told(database, "job-000001", "what") == []
        await database.execute("drop trigger refuse on jobs")
        await wait_until_none_pending(database)
    assert await told(database, "job-000001", "what") == ["fired"]


async def test_a_change_that_the_history_cannot_tell_is_not_made(site: Site, app: Application, database: Any) -> None:
    await database.execute("""
        create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
        create trigger refuse before insert on history for each row when (new.job_id = 'tea') execute function refuse()
        """)
    async with running_consumer(site):
        refused = await app.ask({"id": "tea", "at": FAR})
        accepted = await app.ask({"id": "coffee", "at": FAR})
    assert (refused["outcome"], accepted["outcome"]) == ("rejected", "accepted")
    assert await database.fetch("select id from jobs") == [("coffee",)]


async def test_an_event_that_no_queue_is_bound_for_is_told_with_its_routing_key(site: Site, database: Any) -> None:
    async with an_application(site, listen_to=None), running_producer(site):
        await insert_due(database, 1, topic="biling.reminder")
        await wait_until_none_pending(database)
    assert await told(database, "job-000001", "what", "sequence") == [("unrouted", 1)]
    assert await details(database, "job-000001") == [{"routing_key": "due.event.biling.reminder"}]


async def test_refusals_of_a_full_queue_are_told_seldom(site: Site, database: Any) -> None:
    async with an_application(site, listen_to=None) as app:
        await app.binds(f"{site.prefix}full", "due.event.full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
        await insert_due(database, 2, topic="full")
        async with running_producer(site):

            async def refused_three_times() -> bool:
                return bool(await database.fetchval("select max(refusals) from jobs") >= 3)

            await eventually(refused_three_times)
    rows = await database.fetch("select what, details->>'reason' as reason from history where what = 'refused'")
    assert len(rows) == 2, "the first refusal and the second one, not the third"
    assert {row["reason"] for row in rows} == {"nacked"}


async def test_what_the_misfire_policy_drops_is_told(site: Site, app: Application, database: Any) -> None:
    async with running_producer(site):
        await insert_due(database, 1)
        await database.execute(
            "update jobs set misfire = 'skip', misfire_grace_seconds = 1, next_run_at = now() - interval '1 minute'"
        )
        await wait_until_none_pending(database)
    assert "dropped" in await told(database, "job-000001", "what")


@pytest.mark.parametrize("status", [200, 404])
async def test_how_a_delivery_ends_is_told(site: Site, app: Application, database: Any, status: int) -> None:
    what, reason = ("delivered", None) if status == 200 else ("delivery_failed", "http_404")
    async with (
        a_receiver(answering(status)) as receiver,
        running_consumer(site),
        running_producer(site),
        running_delivery(site),
    ):
        await app.ask({"id": "hook", "at": in_seconds(0), "webhook": {"url": receiver.url}})

        async def is_told() -> bool:
            return len(await told(database, "hook", "what")) == 3

        await eventually(is_told)
    assert await told(database, "hook", "what") == ["accepted", "fired", what]
    assert (await details(database, "hook"))[2].get("reason") == reason


@pytest.mark.parametrize(("level", "kept"), [("changes", ["accepted", "cancelled"]), ("off", [])])
async def test_the_level_decides_what_is_kept(
    site: Site, app: Application, database: Any, level: str, kept: list[str]
) -> None:
    async with running_consumer(site, history=level), running_producer(site, history=level):
        await app.ask({"id": "rule", "every_seconds": 1})
        await app.hears(1)
        await app.ask({"id": "rule"}, key="schedule.cancel")
    assert await told(database, "rule", "what") == kept


@pytest.mark.parametrize("level", ["changes", "off"])
async def test_a_webhook_that_failed_is_explained_at_every_level(
    site: Site, app: Application, database: Any, level: str
) -> None:
    async with (
        a_receiver(answering(404)) as receiver,
        running_consumer(site, history=level),
        running_producer(site, history=level),
        running_delivery(site, history=level),
    ):
        await app.ask({"id": "hook", "at": in_seconds(0), "webhook": {"url": receiver.url}})

        async def is_explained() -> bool:
            assert explain(await read_facts(database, "hook")).cause is Cause.WEBHOOK_FAILED
            return True

        await eventually(is_explained)


async def test_partitions_are_made_ahead_and_dropped_when_their_days_are_over(site: Site, database: Any) -> None:
    today = (await database.fetchval("select now()")).astimezone(UTC)

    async def partitions() -> set[str]:
        query = "select inhrelid::regclass::text from pg_inherits where inhparent = 'history'::regclass"
        return {row[0] for row in await database.fetch(query)}

    def name(days: int) -> str:
        return f"history_{today + timedelta(days=days):%Y%m%d}"

    assert {name(0), name(1), name(2), name(3)} <= await partitions()
    await database.execute(f"drop table {name(2)}")
    await database.execute(f"""
        create table {name(-9)} (like history including all);
        alter table history attach partition {name(-9)} for values
            from ('{today.date() - timedelta(days=9)} 00:00Z') to ('{today.date() - timedelta(days=8)} 00:00Z')""")
    await database.execute("insert into history (at, job_id, what) values (now() - interval '9 days', 'old', 'fired')")
    async with running_producer(site, retention_days=7):

        async def are_maintained() -> bool:
            now = await partitions()
            return name(2) in now and name(-9) not in now

        await eventually(are_maintained)
    assert await database.fetchval("select count(*) from history") == 0


async def test_a_row_of_a_day_without_a_partition_is_kept_all_the_same(site: Site, database: Any) -> None:
    await database.execute("insert into history (at, job_id, what) values ('2040-01-01Z', 'x', 'fired')")
    assert await database.fetchval("select count(*) from history_rest") == 1


async def test_a_reader_of_the_table_delays_the_upkeep_and_no_firing(
    site: Site, app: Application, database: Any
) -> None:
    """Upkeep waits for no lock for long: inserts would wait behind it."""
    await database.execute(f"drop table history_{datetime.now(UTC) + timedelta(days=3):%Y%m%d}")
    reader = await asyncpg.connect(site.database_url)
    try:
        async with reader.transaction():
            await reader.execute("lock table history_rest in access share mode")
            async with running_producer(site):
                await insert_due(database, 10)
                await app.hears(10)
    finally:
        await reader.close()


async def test_running_processes_are_seen_and_a_stop_is_written(site: Site, database: Any) -> None:
    async def instances() -> dict[str, Any]:
        return {row["service"]: row for row in await database.fetch("select * from service_instances")}

    async with running_consumer(site), running_producer(site), running_delivery(site):

        async def all_seen() -> bool:
            return set(await instances()) == {"consumer", "producer", "delivery"}

        await eventually(all_seen)
        assert {row["stopped_at"] for row in (await instances()).values()} == {None}
    assert None not in {row["stopped_at"] for row in (await instances()).values()}


async def test_a_rejected_id_that_cannot_be_stored_keeps_no_other_command_waiting(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        rejected = await app.ask({"id": "a\0b", "at": in_seconds(0)})
        assert (rejected["id"], rejected["outcome"]) == ("a\0b", "rejected")
        assert (await app.ask({"id": "next", "at": in_seconds(60)}))["outcome"] == "accepted"
    assert await told(database, "ab", "what") == ["rejected"]


async def test_five_migrations_at_once_leave_one_history(site: Site, database: Any) -> None:
    await asyncio.gather(*(migrate(site.database_url) for _ in range(5)))
    assert await database.fetchval("select count(*) from history") == 0
