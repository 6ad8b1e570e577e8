"""What the console's charts and its list of hosts are drawn from: exact where little is there, and an estimate, or a
sample, where much is.
"""

from datetime import timedelta
from typing import Any

import pytest

from shared.reading import future, history
from shared.reading.deliveries import count_by_host
from shared.reading.future import Ahead, count_due_within, read_future
from shared.reading.history import lateness_by_minute
from tests.support.delivery_rows import insert_rows
from tests.support.job_rows import insert_due

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


async def test_each_job_is_in_the_part_of_its_next_run(database: Any) -> None:
    await insert_due(database, 3, prefix="soon-", late=-MINUTE * 2.5)
    await insert_due(database, 2, prefix="later-", late=-HOUR * 5.25)
    await insert_due(database, 1, prefix="paused-", late=-MINUTE * 2.5)
    await database.execute("update jobs set status = 'paused' where id ~ 'paused'")
    hour, day = await read_future(database, Ahead.HOUR), await read_future(database, Ahead.DAY)
    assert [number for number, part in enumerate(hour) if part.jobs] == [2]
    assert [(number, part.jobs) for number, part in enumerate(day) if part.jobs] == [(0, 3), (10, 2)]
    assert not any(part.is_about for part in (*hour, *day))
    now = await database.fetchval("select now()")
    assert await count_due_within(database, now, MINUTE, HOUR, HOUR * 24) == [0, 3, 5]


async def test_full_parts_are_estimated_each_by_its_own(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(future, "MAX_COUNTED_PER_PART", 5)
    for hours, jobs in ((1, 4), (7, 2_000), (13, 400)):
        await insert_due(database, jobs, prefix=f"in-{hours}-", late=-HOUR * hours - MINUTE)
    await database.execute("vacuum analyze jobs")
    async with database.transaction(readonly=True):
        parts = [part for part in await read_future(database, Ahead.WEEK) if part.jobs]
    assert [part.is_about for part in parts] == [False, True, True]
    assert parts[0].jobs == 4
    assert parts[1].jobs == pytest.approx(2_000, rel=0.3)
    assert parts[2].jobs == pytest.approx(400, rel=0.3)


async def test_a_minute_without_occurrences_has_no_lateness(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    minute = await database.fetchval(history.THIS_MINUTE)
    monkeypatch.setattr(history, "THIS_MINUTE", f"select '{minute.isoformat()}'::timestamptz")
    told = """
        insert into history (job_id, what, at, due_at)
        select 'job', 'fired', $1, $1::timestamptz - n * interval '10 ms' from generate_series(1, 9) as n"""
    await database.execute(told, minute)
    *before, last = await lateness_by_minute(database)
    assert (len(before), {one.p50 for one in before}) == (59, {None})
    assert (last.sample, last.p50, last.p99) == (9, timedelta(milliseconds=50), timedelta(milliseconds=90))


async def test_each_minute_has_a_sample_of_its_own_entries_beside_a_burst_that_vacuum_has_not_seen(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    minute = await database.fetchval(history.THIS_MINUTE)
    monkeypatch.setattr(history, "THIS_MINUTE", f"select '{minute.isoformat()}'::timestamptz")
    if await database.fetchval("select ($1::timestamptz at time zone 'UTC')::time < '00:31'", minute):
        pytest.skip("there is no partition of yesterday")
    insert = """
        insert into history (job_id, what, at, due_at)
        select 'job', case when n % 2 = 0 then 'fired' else 'accepted' end, at, at - ($1 - ago) * interval '10 ms'
          from generate_series($1::int, $2::int, -1) as ago, generate_series(1, $3::int) as n,
               lateral (select $4::timestamptz - ago * interval '1 min' + n * interval '1 ms' as at) as told
         order by at"""
    await database.execute(insert, 30, 1, 200, minute)
    await database.execute("vacuum analyze history")
    await database.execute(insert, 0, 0, 30_000, minute)
    found = (await lateness_by_minute(database))[-31:]
    assert [one.p99 for one in found] == [timedelta(milliseconds=10 * n) for n in range(30)] + [timedelta(0)]
    assert {one.sample for one in found} == {100}


async def test_hosts_are_told_by_what_waits_for_them_and_what_failed(database: Any) -> None:
    await insert_rows(database, "a.example", 1)
    await insert_rows(database, "b.example", 2)
    await database.execute("update deliveries set status = 'PROCESSING', version = version + 1 where id = 2")
    await database.execute("""
        update deliveries set status = 'FAILED', version = version + 1, finished_at = now(), next_attempt_at = null,
               failure_reason = 'timeout' where id = 2""")
    hosts = {one.host: (one.open, one.failed) for one in await count_by_host(database)}
    assert hosts == {"a.example": (1, 0), "b.example": (1, 1)}
