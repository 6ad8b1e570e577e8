"""Claiming and recording: who gets what, at what cost, and what becomes of a lease that was lost."""

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from delivery.attempt.retry import Answered, CallError, Delivered, GiveUp, Postpone, Retry, Unanswered
from delivery.attempt.runner import update_after_call
from delivery.dispatch.local_queue import Room
from delivery.model import Delivery, given_back
from delivery.store.claims import (
    CLAIM_OLDEST,
    CLAIM_ROUND,
    DELIVERY_PLANNER_SETTINGS,
    claim_oldest,
    claim_round,
    seconds_until_next,
)
from delivery.store.results import record
from delivery.store.retention import delete_finished
from tests.support.delivery_rows import insert_rows
from tests.support.stores import Site

NO_CALLS_PER_HOST: dict[str, int] = {}
MARGIN = 30.0


async def claim(
    database: Any, total: int = 100, per_host: int = 100, look_at: int = 1000, **rooms: int
) -> list[Delivery]:
    exceptions = {f"{host}:80": room for host, room in rooms.items()}
    async with database.transaction():
        claimed, _ = await claim_oldest(database, Room(total, per_host, exceptions), MARGIN, look_at)
    return claimed


async def claim_in_round(database: Any, total: int = 100, after: str = "", **rooms: int) -> list[Delivery]:
    exceptions = {f"{host}:80": room for host, room in rooms.items()}
    async with database.transaction():
        return await claim_round(database, Room(total, 100, exceptions), MARGIN, after)


def hosts_of(claimed: list[Delivery]) -> dict[str, int]:
    return dict(Counter(delivery.host.split(":")[0] for delivery in claimed))


async def test_one_claim_finds_new_retryable_and_abandoned_rows_and_nothing_else(database: Any) -> None:
    await insert_rows(database, "new:80", 1)
    await insert_rows(database, "retry:80", 1)
    await insert_rows(database, "abandoned:80", 1)
    await insert_rows(database, "later:80", 1, due_in=60)
    await insert_rows(database, "leased:80", 1)
    past, future = "now() - interval '1 second'", "now() + interval '20 seconds'"
    for host, retries, at in (("retry:80", 1, past), ("abandoned:80", 0, past), ("leased:80", 0, future)):
        await database.execute(
            f"""update deliveries set status = 'PROCESSING', version = 2, retry_count = $2, next_attempt_at = {at}
                 where host = $1""",
            host,
            retries,
        )
    assert hosts_of(await claim(database)) == {"new": 1, "retry": 1, "abandoned": 1}
    assert await claim(database) == [], "they are leased now"


async def test_a_lease_is_the_calls_timeout_and_the_margin(database: Any) -> None:
    await insert_rows(database, "a:80", 1)
    [delivery] = await claim(database)
    row = await database.fetchrow("select * from deliveries")
    assert (row["status"], row["version"], delivery.version) == ("PROCESSING", 2, 2)
    assert row["next_attempt_at"] - delivery.claimed_at == timedelta(seconds=delivery.timeout_seconds + MARGIN)
    before = await database.fetchval("select clock_timestamp()")
    seconds = await seconds_until_next(database) or 0.0
    after = await database.fetchval("select clock_timestamp()")
    assert row["next_attempt_at"] - after <= timedelta(seconds=seconds) <= row["next_attempt_at"] - before


async def test_no_host_gets_more_than_its_room(database: Any) -> None:
    for host in ("a:80", "b:80", "c:80"):
        await insert_rows(database, host, 10)
    assert hosts_of(await claim(database, per_host=3, b=0, c=1)) == {"a": 3, "c": 1}
    assert hosts_of(await claim_in_round(database, a=2, b=4, c=0)) == {"a": 2, "b": 4}
    assert len(await claim(database, total=5)) == 5


async def test_the_oldest_come_first(database: Any) -> None:
    for age in (10, 30, 20):
        await insert_rows(database, f"{age}:80", 1, due_in=-age)
    assert [next(iter(hosts_of(await claim(database, total=1)))) for _ in range(3)] == ["30", "20", "10"]


async def test_a_host_that_fills_the_view_is_stepped_over_in_a_round(database: Any) -> None:
    await insert_rows(database, "dead:80", 50, due_in=-100)
    await insert_rows(database, "a:80", 2)
    await insert_rows(database, "z:80", 2)
    async with database.transaction():
        claimed, rows_read = await claim_oldest(database, Room(10, 10, {"dead:80": 0}), MARGIN, 20)
    assert (claimed, rows_read) == ([], 20)
    assert hosts_of(await claim_in_round(database, total=3, after="b", dead=0)) == {"z": 2}
    assert hosts_of(await claim_in_round(database, total=3, dead=0)) == {"a": 2}


async def test_claims_at_the_same_time_never_share_a_row(site: Site, database: Any) -> None:
    for number in range(10):
        await insert_rows(database, f"h{number}:80", 50)
    connections = [await asyncpg.connect(site.database_url) for _ in range(4)]
    try:

        async def take(connection: Any, in_rounds: bool) -> list[int]:
            ids: list[int] = []
            while found := await (claim_in_round(connection, 20) if in_rounds else claim(connection, 20)):
                ids += [delivery.id for delivery in found]
            return ids

        taken = await asyncio.gather(*(take(c, bool(n % 2)) for n, c in enumerate(connections)))
    finally:
        for connection in connections:
            await connection.close()
    ids = [row_id for ids in taken for row_id in ids]
    assert len(ids) == len(set(ids)) == 500


async def buffers(database: Any, sql: str, *arguments: Any) -> int:
    """How many pages the statement touches: what it costs, whatever else the machine does."""
    async with database.transaction():
        for setting, value in DELIVERY_PLANNER_SETTINGS.items():
            await database.execute(f"set local {setting} = {value}")
        plan = json.loads(await database.fetchval(f"explain (analyze, buffers, format json) {sql}", *arguments))
        assert "Seq Scan" not in json.dumps(plan)
        pages = plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
    return int(pages)


@pytest.mark.parametrize("analyzed", [True, False])
async def test_a_claim_costs_the_same_whatever_one_host_has_waiting(database: Any, analyzed: bool) -> None:
    async def costs() -> dict[str, int]:
        if analyzed:
            await database.execute("analyze deliveries")
        bounds = (None, MARGIN, ["dead:80"], [0], 16, 50)
        return {
            "oldest": await buffers(database, CLAIM_OLDEST, *bounds, 100),
            "round": await buffers(database, CLAIM_ROUND, *bounds, ""),
        }

    async def refill() -> None:
        for number in range(10):
            await insert_rows(database, f"h{number}-{datetime.now(UTC).timestamp()}:80", 2)

    await insert_rows(database, "dead:80", 100, due_in=-100)
    await refill()
    with_a_hundred = await costs()
    await database.execute("delete from deliveries where host = 'dead:80'")
    await insert_rows(database, "dead:80", 20_000, due_in=-100)
    await refill()
    with_twenty_thousand = await costs()
    for how, pages in with_twenty_thousand.items():
        assert pages <= 3 * with_a_hundred[how] + 60, (how, with_a_hundred, with_twenty_thousand)


async def test_an_outcome_is_recorded_with_its_attempt_and_its_announcement(database: Any) -> None:
    await insert_rows(database, "a:80", 3)
    done, again, over = await claim(database)
    now, took = datetime.now(UTC), timedelta(seconds=0.25)
    written = await record(
        database,
        [
            update_after_call(done, Answered(200, None, b"ok"), Delivered(), now, took),
            update_after_call(again, Answered(503), Retry(timedelta(seconds=60), "http_503"), now, took),
            update_after_call(over, Answered(404), GiveUp("http_404"), now, took),
        ],
    )
    assert written == {(d.id, d.version) for d in (done, again, over)}
    rows = await database.fetch("select status, retry_count, failure_reason, version from deliveries order by id")
    assert [tuple(row) for row in rows] == [
        ("COMPLETED", 0, None, 3),
        ("PROCESSING", 1, None, 3),
        ("FAILED", 0, "http_404", 3),
    ]
    attempts = await database.fetch(
        "select number, duration_seconds, status_code, answer from delivery_attempts order by 3"
    )
    assert [tuple(row) for row in attempts] == [(1, 0.25, 200, b"ok"), (1, 0.25, 404, b""), (1, 0.25, 503, b"")]
    announced = await database.fetch("select delivery_id from delivery_announcements order by 1")
    assert [row[0] for row in announced] == [done.id, over.id]


async def test_a_worker_that_lost_its_lease_records_nothing(database: Any) -> None:
    await insert_rows(database, "a:80", 1)
    [mine] = await claim(database)
    async with database.transaction():
        later = mine.claimed_at + timedelta(minutes=5)
        [[taken_over], _] = await claim_oldest(database, Room(1, 1, NO_CALLS_PER_HOST), MARGIN, 10, now=later)
    ended = update_after_call(mine, Answered(200), Delivered(), mine.claimed_at, timedelta(0))
    assert await record(database, [ended, given_back(mine)]) == set()
    row = await database.fetchrow("select status, version from deliveries")
    assert tuple(row) == ("PROCESSING", taken_over.version)
    for table in ("delivery_attempts", "delivery_announcements"):
        assert await database.fetchval(f"select count(*) from {table}") == 0


async def test_a_delivery_that_is_given_back_is_due_at_once_and_spends_no_attempt(database: Any) -> None:
    await insert_rows(database, "a:80", 1)
    [first] = await claim(database)
    await record(database, [given_back(first)])
    [second] = await claim(database)
    assert (second.retry_count, second.version) == (0, first.version + 2)
    assert await database.fetchval("select count(*) from delivery_attempts") == 0


async def test_a_delivery_that_is_postponed_is_due_later_and_spends_no_attempt(database: Any) -> None:
    await insert_rows(database, "a:80", 1)
    [mine] = await claim(database)
    result, pause = Unanswered(CallError.TOO_MANY_LOOKUPS), timedelta(seconds=7)
    postponed = update_after_call(mine, result, Postpone(pause, "too_many_lookups"), mine.claimed_at, timedelta(0))
    assert await record(database, [postponed]) == {(mine.id, mine.version)}
    row = await database.fetchrow("select retry_count, next_attempt_at - clock_timestamp() as wait from deliveries")
    assert row["retry_count"] == 0
    assert timedelta(0) < row["wait"] <= pause
    assert await database.fetchval("select count(*) from delivery_attempts") == 0


async def test_retention_deletes_what_ended_long_ago_and_was_announced(database: Any) -> None:
    for number in range(4):
        await insert_rows(database, f"h{number}:80", 1)
    claimed = sorted(await claim(database), key=lambda delivery: delivery.host)
    now = datetime.now(UTC)
    ended = [update_after_call(delivery, Answered(200), Delivered(), now, timedelta(0)) for delivery in claimed[:3]]
    await record(database, ended)
    await database.execute("delete from delivery_announcements where delivery_id <> $1", claimed[0].id)
    assert await delete_finished(database, timedelta(days=30), 10) == 0
    assert await delete_finished(database, timedelta(0), 1) == 1, "a few at a time"
    assert await delete_finished(database, timedelta(0), 10) == 1
    left = await database.fetch("select host from deliveries order by 1")
    assert [row[0] for row in left] == ["h0:80", "h3:80"], "one is still to be announced, one is open"
    assert await database.fetchval("select count(*) from delivery_attempts") == 1
