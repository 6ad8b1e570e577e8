"""Coming back after a downtime: a service waits for its database, says what is overdue, and works off all of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.runtime.limited_lines import MAX_FULL_LINES
from tests.support.application import Application
from tests.support.eventually import eventually
from tests.support.job_rows import insert_due, wait_until_none_pending
from tests.support.services import service_process
from tests.support.stores import Site

TERMINATE_WAITING = "select pg_terminate_backend(pid) from pg_locks where relation = $1::text::regclass and not granted"


async def test_after_a_downtime_the_producer_says_what_is_overdue_and_rings_all_of_it(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    await insert_due(database, 30, prefix="day-old-", late=timedelta(days=1))
    await insert_due(database, 12, prefix="hour-old-", late=timedelta(hours=1))
    await database.execute("update jobs set updated_at = now() - interval '2 days'")  # when they were asked for
    with service_process("producer", site, tmp_path) as producer:
        await app.hears(42)
        await wait_until_none_pending(database)
        [recovery] = producer.said("recovery")
        assert recovery["overdue_jobs"] == 42
        assert recovery["oldest_due_at"] < recovery["newest_due_at"]
        assert producer.terminate() == 0

    late = producer.said("fired_late")
    assert len(late) == MAX_FULL_LINES
    assert {line["idempotency_key"] for line in late} < {e.content["idempotency_key"] for e in app.heard}
    assert all(line["late_seconds"] > 3_600 and line["reason"] == "overdue" for line in late)
    summaries = producer.said("fired_late_summary")
    assert sum(line["count"] for line in summaries) == 42 - MAX_FULL_LINES
    assert summaries[0]["by_reason"] == {"overdue": summaries[0]["count"]}


async def test_a_start_does_not_count_millions(site: Site, database: Any, tmp_path: Path) -> None:
    await insert_due(database, 10_500, late=timedelta(hours=2))
    with service_process("producer", site, tmp_path) as producer:

        async def said() -> bool:
            return bool(producer.said("recovery"))

        await eventually(said)
        [recovery] = producer.said("recovery")
        assert (recovery["overdue_jobs"], recovery["at_least"]) == (10_000, True)


@pytest.mark.parametrize(("service", "table"), [("producer", "jobs"), ("delivery", "deliveries")])
async def test_a_database_that_goes_away_while_a_service_starts_is_waited_for(
    site: Site, database: Any, tmp_path: Path, service: str, table: str
) -> None:
    """After its schema was found current, and before anything else: what is overdue is being counted."""
    lock = database.transaction()
    await lock.start()
    await database.execute(f"lock table {table}")
    with service_process(service, site, tmp_path) as process:

        async def broken_off() -> bool:
            return bool(await database.fetchval(TERMINATE_WAITING, table))

        async def said(event: str) -> bool:
            assert process.said(event), process.log.read_text()
            return True

        await eventually(broken_off)
        await eventually(lambda: said("database_not_ready"))
        assert not process.said("recovery")
        await lock.rollback()
        await eventually(lambda: said("recovery"))
