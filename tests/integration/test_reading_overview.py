"""The numbers of the overview are true: each job is counted once, and lateness is what producers are to blame for."""

import json
from datetime import timedelta
from typing import Any

import pytest

from shared.reading import overview
from shared.reading.overview import (
    DELIVERY_NUMBERS,
    JOB_NUMBERS,
    LATENESS,
    TODAYS_PAGES,
    JobNumbers,
    count_deliveries,
    count_open_jobs,
    read_instances,
    read_lateness,
    read_overview,
)
from tests.support.delivery_rows import insert_rows
from tests.support.job_rows import insert_due

HOUR = timedelta(hours=1)


async def test_an_overdue_job_is_no_refused_one_and_a_past_request_is_late_since_it_came(database: Any) -> None:
    assert await count_open_jobs(database) == JobNumbers(0, 0, None, 0, None, 0)
    await insert_due(database, 3, prefix="past-", late=timedelta(days=900))
    await insert_due(database, 1, prefix="refused-", late=HOUR)
    await insert_due(database, 1, prefix="turn-", late=HOUR)
    await insert_due(database, 2, prefix="paused-", late=HOUR)
    await insert_due(database, 4, prefix="later-", late=-HOUR)
    await database.execute("update jobs set retry_at = now() + interval '1 min' where id ~ 'refused|turn'")
    await database.execute("update jobs set refusals = 2 where id ~ 'refused'")
    await database.execute("update jobs set status = 'paused' where id ~ 'paused'")
    numbers = await count_open_jobs(database)
    assert (numbers.pending, numbers.overdue, numbers.refused, numbers.paused) == (9, 4, 1, 2)
    now = await database.fetchval("select now()")
    assert numbers.overdue_since is not None
    assert now - numbers.overdue_since < HOUR / 2, "they came a moment ago"
    assert numbers.refused_since is not None
    assert now - numbers.refused_since > HOUR / 2
    await database.execute("update jobs set updated_at = now() - interval '2 days' where id ~ 'past'")
    numbers = await count_open_jobs(database)
    assert numbers.overdue_since is not None
    assert now - numbers.overdue_since > timedelta(days=1)


async def test_a_failed_delivery_counts_until_it_is_replayed(database: Any) -> None:
    await insert_rows(database, "example.com:443", 3)
    numbers = await count_deliveries(database)
    assert (numbers.open, numbers.overdue, numbers.failed) == (3, 3, 0)
    await database.execute("update deliveries set status = 'PROCESSING', version = version + 1")
    await database.execute(
        "update deliveries set status = 'FAILED', version = version + 1, next_attempt_at = null,"
        " failure_reason = 'http_500', finished_at = now() - (id - (select min(id) from deliveries)) * interval '20 h'"
    )
    numbers = await count_deliveries(database)
    assert (numbers.open, numbers.overdue_since, numbers.failed) == (0, None, 2), "one failed 40 hours ago"
    await database.execute(
        "insert into deliveries (job_id, idempotency_key, replay_of, topic, sequence, due_at, fired_at, url, host,"
        " headers, timeout_seconds, max_retries) select job_id, idempotency_key, id, topic, sequence, due_at, fired_at,"
        " url, host, headers, timeout_seconds, max_retries from deliveries order by id limit 1"
    )
    numbers = await count_deliveries(database)
    assert (numbers.open, numbers.failed) == (1, 1)


async def tell(database: Any, job_id: str, what: str, seconds_ago: float, due_seconds_ago: float | None = None) -> None:
    await database.execute(
        "insert into history (at, job_id, what, due_at) values (now() - $3::interval, $1, $2, now() - $4::interval)",
        job_id, what, timedelta(seconds=seconds_ago),
        None if due_seconds_ago is None else timedelta(seconds=due_seconds_ago),
    )  # fmt: skip


async def test_lateness_is_that_of_the_newest_rings_and_never_negative(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await read_lateness(database) is None
    await tell(database, "accepted", "accepted", 3)
    assert await read_lateness(database) is None, "nothing rang"
    if await database.fetchval("select (now() at time zone 'UTC')::time < '00:06'"):
        pytest.skip("the rings of yesterday are not counted")
    await tell(database, "old", "fired", 400, 5000)
    await tell(database, "early by rounding", "fired", 10, 9.997)
    await tell(database, "late", "fired", 10, 40)
    # For a moment three days ago: it rang two seconds after the request came.
    await tell(database, "past", "accepted", 12)
    await tell(database, "past", "fired", 10, 259_200)
    await tell(database, "resumed", "resumed", 10.5)
    await tell(database, "resumed", "fired", 10, 3600)
    lateness = await read_lateness(database)
    assert lateness is not None
    assert lateness.rings == 4
    assert [round(late.total_seconds(), 1) for late in (lateness.p50, lateness.p99, lateness.longest)] == [0.5, 30, 30]
    await database.execute("truncate history")
    assert await read_lateness(database) is None


async def test_processes_are_told_by_their_last_sign_of_life(database: Any) -> None:
    await database.execute("""
        insert into service_instances (instance, service, host, version, started_at, seen_at, stopped_at, details)
        values
        ('a', 'producer', 'h', '1', now() - interval '1 day', now() - interval '3 s', null, null),
        ('b', 'producer', 'h', '1', now() - interval '1 h', now() - interval '90 s', null, null),
        ('c', 'delivery', 'h', '1', now() - interval '1 h', now() - interval '20 s', now(), null),
        ('d', 'delivery', 'h', '1', now(), now(), null, '{"open_breakers": {"example.com:443": 12.5}}'),
        ('e', 'consumer', 'h', '1', now(), now() - interval '3 h', null, null)
    """)
    found = await read_instances(database, HOUR)
    assert [(one.instance, one.state) for one in found] == [
        ("d", "alive"), ("c", "stopped"), ("b", "silent"), ("a", "alive"),
    ]  # fmt: skip
    assert found[0].open_breakers == {"example.com:443": timedelta(seconds=12.5)}


async def test_the_overview_is_of_one_database_with_its_schema(database: Any) -> None:
    seen = await read_overview(database)
    assert seen.schema_version == seen.schema_needed > 0
    assert (seen.jobs.pending, seen.deliveries.open, seen.lateness, seen.instances) == (0, 0, None, [])


async def test_no_number_is_read_from_a_whole_table(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await insert_due(database, 20_000, late=-HOUR)
    await insert_due(database, 2000, prefix="refused-", late=HOUR)
    await database.execute("update jobs set retry_at = now() where id ~ 'refused'")
    await insert_rows(database, "example.com:443", 20_000)
    await database.execute(
        "insert into history (at, job_id, what, due_at) select now(), n::text, 'fired', now()"
        " from generate_series(1, $1) n",
        50_000,
    )
    await database.execute("vacuum analyze jobs, deliveries, history")
    pages = await database.fetchval(TODAYS_PAGES)
    today = await database.fetchval("select 'history_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')")
    assert pages > overview.MAX_HISTORY_PAGES
    for statement, parameters in (
        (JOB_NUMBERS, ("100",)),
        (DELIVERY_NUMBERS, ("100", "interval '1 day'")),
        (LATENESS, (f"{pages - 250}", "interval '5 min'")),
    ):
        for number, value in enumerate(parameters, 1):
            statement = statement.replace(f"${number}", value)  # noqa: PLW2901
        [plan] = json.loads(await database.fetchval(f"explain (format json) {statement}"))
        scans = [node for node in nodes(plan["Plan"]) if node["Node Type"].endswith("Scan") and "Relation Name" in node]
        assert scans
        sequential = {node["Relation Name"] for node in scans if "Seq" in node["Node Type"]}
        assert not sequential & {"jobs", "deliveries", today}, (statement, plan)
    monkeypatch.setattr(overview, "MAX_HISTORY_PAGES", 1)
    lateness = await read_lateness(database)
    assert lateness is not None
    assert 0 < lateness.rings < 1000


def nodes(plan: dict[str, Any]) -> Any:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)
