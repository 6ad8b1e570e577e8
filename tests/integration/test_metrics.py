"""Every metric moves when its event happens, and has labels from closed lists only."""

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from prometheus_client import CollectorRegistry

from delivery.store.claims import DELIVERY_PLANNER_SETTINGS
from delivery.store.samples import SAMPLE_DELIVERIES, sample_deliveries
from producer.metrics import Metrics as ProducerMetrics
from producer.sampling import Sampler
from producer.store.lanes import PRODUCER_PLANNER_SETTINGS
from producer.store.samples import COUNT_REFUSED_BY_KEY, SAMPLE_JOBS, count_refused_by_key, sample_jobs
from shared.postgres.pool import open_pool
from stack.ports import free_port
from tests.support.application import Application
from tests.support.builders import a_request, in_seconds, minutely
from tests.support.delivery_rows import insert_rows
from tests.support.due_events import a_due, publish_due
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import insert_due
from tests.support.metrics import Metrics
from tests.support.receiver import Gate, a_receiver, answering
from tests.support.services import running_consumer, running_delivery, running_producer
from tests.support.stores import Site


async def test_the_consumer_counts_what_becomes_of_commands(site: Site, app: Application) -> None:
    metrics = Metrics(free_port())
    async with running_consumer(site, metrics_port=metrics.port):
        await app.request(a_request(id="a"))
        await app.request(a_request(id="a"))
        await app.request(a_request(id="a", revision=2))
        await app.cancel("a")
        await app.request(a_request(id="b", topic="not a topic"))
        await app.request({**a_request(id="c"), "surprise\N{BELL}": 1})
        for outcome in ("accepted", "duplicate", "rescheduled", "cancelled"):
            await metrics.reaches(1, "commands_total", outcome=outcome)
        await metrics.reaches(2, "commands_total", outcome="rejected")
        values = await metrics.values()
        assert values["jobs_queued_total", frozenset()] == 1
        assert values["jobs_cancelled_total", frozenset()] == 1
        assert values["commands_parked_total", frozenset({("field", "topic")})] == 1
        assert values["commands_parked_total", frozenset({("field", "other")})] == 1, "not what the command says"
        assert values["commands_batch_size_count", frozenset()] == 6
        assert values["commands_batch_size_sum", frozenset()] == 6
        assert values["commands_store_seconds_count", frozenset()] == 6
        for dependency in ("broker", "database"):
            assert values["dependency_up", frozenset({("dependency", dependency)})] == 1


async def test_a_split_batch_and_a_reply_without_a_queue_are_counted(
    site: Site, app: Application, database: Any
) -> None:
    await database.execute("alter table jobs add constraint no_thirteen check (id <> 'thirteen')")
    metrics = Metrics(free_port())
    async with running_consumer(site, metrics_port=metrics.port):
        assert (await app.request(a_request(id="thirteen")))["outcome"] == "rejected"
        await metrics.reaches(1, "commands_batches_split_total")
        await metrics.reaches(1, "commands_parked_total", field="body")


async def test_the_producer_counts_and_times_what_it_publishes(site: Site, app: Application, database: Any) -> None:
    await insert_due(database, 3, prefix="fresh-")
    await insert_due(database, 2, prefix="old-", late=timedelta(hours=2))
    metrics = Metrics(free_port())
    async with running_producer(site, metrics_port=metrics.port):
        await app.hears(5)
        await metrics.reaches(5, "jobs_due_total")
        await metrics.reaches(2, "jobs_late_total")
        values = await metrics.values()
        published = {("stage", "published")}
        assert values["occurrence_lateness_seconds_count", frozenset(published)] == 5
        assert values["occurrence_lateness_seconds_bucket", frozenset({*published, ("le", "3600.0")})] == 3
        assert values["occurrence_lateness_seconds_bucket", frozenset({*published, ("le", "21600.0")})] == 5
        for lane in ("due_now", "overdue"):
            for timed in ("claim_query_seconds", "claim_transaction_seconds", "publish_confirm_seconds"):
                assert values[f"{timed}_count", frozenset({("lane", lane)})] >= 1, (timed, lane)
        first = await metrics.value("producer_last_poll_timestamp_seconds", lane="due_now")
        await metrics.reaches(first + 0.1, "producer_last_poll_timestamp_seconds", lane="due_now")


async def test_refusals_misfires_and_unreadable_rules_are_counted(site: Site, app: Application, database: Any) -> None:
    await app.binds(f"{site.prefix}full", "due.event.full", **{"x-max-length": 0, "x-overflow": "reject-publish"})
    await insert_due(database, 2, prefix="refused-", topic="full")
    await insert_due(database, 1, prefix="broken-", rule=minutely(timezone="Mars/Olympus"))
    await database.execute(
        "insert into jobs (id, status, revision, topic, misfire, misfire_grace_seconds, next_run_at)"
        " values ('skipped', 'pending', 1, 'default', 'skip', 0, now() - interval '1 hour'),"
        " ('paused', 'paused', 1, 'default', 'all', 60, now() - interval '1 hour')"
    )
    metrics = Metrics(free_port())
    async with running_producer(site, metrics_port=metrics.port):
        await metrics.reaches(2, "events_not_published_total", verdict="nacked")
        await metrics.reaches(1, "jobs_put_off_total")
        await metrics.reaches(1, "jobs_misfired_total")
        await metrics.reaches(3, "jobs_refused")
        await metrics.reaches(3, "jobs_pending")
        await metrics.reaches(2, "jobs_refused_by_routing_key", routing_key="due.event.full")
        await metrics.reaches(1, "jobs_paused")
        assert await metrics.value("jobs_oldest_overdue_seconds") == 0, "a queue that is full is not lateness"
        await app.channel.queue_delete(f"{site.prefix}full")
        await database.execute("update jobs set retry_at = now(), version = version + 1 where topic = 'full'")

        async def is_gone() -> bool:
            return (
                "jobs_refused_by_routing_key",
                frozenset({("routing_key", "due.event.full")}),
            ) not in await metrics.values()

        await eventually(is_gone)


async def test_what_is_pending_and_overdue_is_sampled(site: Site, database: Any) -> None:
    await insert_due(database, 7, late=timedelta(minutes=10))
    await insert_due(database, 5, prefix="later-", late=-timedelta(hours=1))
    registry = CollectorRegistry()
    metrics = ProducerMetrics(registry)
    async with open_pool(site.database_url_of("producer"), "test", 1, **PRODUCER_PLANNER_SETTINGS) as pool:
        await Sampler(pool, metrics).sample_once()
    assert registry.get_sample_value("jobs_pending") == 12
    assert registry.get_sample_value("jobs_overdue") == 7
    assert registry.get_sample_value("jobs_refused") == 0
    assert registry.get_sample_value("jobs_oldest_overdue_seconds") == pytest.approx(600, abs=30)


async def test_beyond_its_bound_the_sample_is_an_estimate_and_looks_no_further(site: Site, database: Any) -> None:
    await insert_due(database, 3_000, late=timedelta(minutes=10))
    await insert_due(database, 3_000, prefix="refused-", late=timedelta(minutes=10))
    await database.execute("update jobs set retry_at = now(), refusals = 1 where id like 'refused-%'")
    await insert_due(database, 3_000, prefix="paused-", late=timedelta(minutes=10))
    await database.execute("update jobs set status = 'paused' where id like 'paused-%'")
    await database.execute("analyze jobs")
    connection = await asyncpg.connect(site.database_url, timeout=PATIENCE, server_settings=PRODUCER_PLANNER_SETTINGS)
    try:
        sample = await sample_jobs(connection, up_to=100)
        assert sample.overdue == 100
        assert (sample.refused, sample.paused) == (100, 100)
        assert sample.pending == pytest.approx(6_000, rel=0.1)
        assert await count_refused_by_key(connection, up_to=100, keys=5) == {"due.event.default": 100}
        for query, bounds in ((SAMPLE_JOBS, (100,)), (COUNT_REFUSED_BY_KEY, (100, 5))):
            explained = await connection.fetch(f"explain (analyze, timing off) {query}", *bounds)
            plan = "\n".join(row[0] for row in explained)
            assert "Seq Scan" not in plan.replace("Seq Scan on pg_class", "")
            assert "actual rows=3000" not in plan
    finally:
        await connection.close(timeout=5)


async def test_retention_is_counted(site: Site, database: Any) -> None:
    await database.execute(
        "insert into jobs (id, status, revision, topic, misfire, misfire_grace_seconds, finished_at)"
        " values ('old', 'cancelled', 1, 'default', 'all', 0, now() - interval '31 days')"
    )
    metrics = Metrics(free_port())
    async with running_producer(site, metrics_port=metrics.port):
        await metrics.reaches(1, "jobs_deleted_total")


async def test_a_request_in_the_past_is_late_by_its_own_clock(site: Site, app: Application) -> None:
    metrics = Metrics(free_port())
    async with running_consumer(site), running_producer(site, metrics_port=metrics.port):
        await app.request(a_request(at=in_seconds(-600)))
        await metrics.reaches(600, "occurrence_lateness_seconds_sum", stage="published")


async def test_delivery_counts_and_times_its_calls(site: Site, app: Application) -> None:
    metrics = Metrics(free_port())
    async with (
        a_receiver() as well,
        a_receiver(answering(503, 200)) as slow_starter,
        a_receiver(answering(404)) as gone,
        running_delivery(site, metrics_port=metrics.port),
    ):
        long_ago = datetime.now(UTC) - timedelta(minutes=10)
        once = a_due("once", well.url)
        await publish_due(app, once, once, a_due("late", well.url, due_at=long_ago))
        await publish_due(app, a_due("again", slow_starter.url), a_due("never", gone.url), b"not an event")
        await metrics.reaches(3, "deliveries_total", outcome="completed")
        await metrics.reaches(1, "deliveries_total", outcome="failed")
        await metrics.reaches(1, "delivery_events_parked_total")
        await metrics.reaches(4, "delivery_outcomes_announced_total")
        values = await metrics.values()
    for result, times in {"2xx": 3, "5xx": 1, "4xx": 1, "timeout": 0}.items():
        assert values["delivery_attempts_total", frozenset({("result", result)})] == times
    assert values["deliveries_stored_total", frozenset()] == 4
    assert values["deliveries_duplicate_total", frozenset()] == 1
    assert values["delivery_retries_total", frozenset()] == 1
    assert values["delivery_call_seconds_count", frozenset()] == 5
    assert values["deliveries_late_total", frozenset()] == 1
    assert values["deliveries_in_flight", frozenset()] == 0
    assert values["occurrence_lateness_seconds_count", frozenset({("stage", "first_attempt")})] == 4
    assert values["occurrence_lateness_seconds_count", frozenset({("stage", "delivered")})] == 3
    assert values["occurrence_lateness_seconds_sum", frozenset({("stage", "delivered")})] >= 600


async def test_calls_in_flight_and_breakers_are_shown(site: Site, app: Application) -> None:
    gate, metrics = Gate(status=500), Metrics(free_port())
    settings = {"metrics_port": metrics.port, "breaker_failures": 2, "breaker_first_pause_seconds": 60}
    async with a_receiver(gate) as receiver, running_delivery(site, **settings):
        await publish_due(app, *(a_due(f"job-{n}", receiver.url) for n in range(2)))
        await metrics.reaches(2, "deliveries_in_flight")
        gate.opened.set()
        await metrics.reaches(1, "delivery_breakers_open")
        await metrics.reaches(1, "delivery_breaker_changes_total", change="opened")
        await metrics.reaches(2, "deliveries_open")
        await metrics.reaches(1, "deliveries_overdue")
        await metrics.reaches(0.1, "deliveries_oldest_overdue_seconds")


async def test_the_sample_of_deliveries_looks_no_further_than_its_bound(site: Site, database: Any) -> None:
    await insert_rows(database, "example.com:443", 3_000)
    await database.execute("analyze deliveries")
    connection = await asyncpg.connect(site.database_url, timeout=PATIENCE, server_settings=DELIVERY_PLANNER_SETTINGS)
    try:
        sample = await sample_deliveries(connection, up_to=100)
        assert (sample.open, sample.overdue) == (100, 100)
        plan = await connection.fetch(f"explain (analyze, timing off) {SAMPLE_DELIVERIES}", 100)
        text = "\n".join(row[0] for row in plan)
        assert "Seq Scan" not in text
        assert "actual rows=3000" not in text
    finally:
        await connection.close(timeout=5)
