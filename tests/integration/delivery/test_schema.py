"""The schema refuses every move that is not in LEGAL_MOVES."""

from itertools import product
from typing import Any

import asyncpg
import pytest

from delivery.model import FIRST_STATUSES, LEGAL_MOVES, DeliveryStatus
from tests.support.delivery_rows import insert_rows

MOVE = """
update deliveries
   set status = $2, version = version + 1,
       next_attempt_at = case when $2 in ('PENDING', 'PROCESSING') then now() end,
       finished_at = case when $2 in ('COMPLETED', 'FAILED') then now() end,
       failure_reason = case when $2 = 'FAILED' then 'http_404' end
 where id = $1
"""
PATHS: dict[DeliveryStatus, list[str]] = {
    DeliveryStatus.PENDING: [],
    DeliveryStatus.PROCESSING: ["PROCESSING"],
    DeliveryStatus.COMPLETED: ["PROCESSING", "COMPLETED"],
    DeliveryStatus.FAILED: ["PROCESSING", "FAILED"],
}


async def a_row(database: Any, status: DeliveryStatus, host: str = "a:80") -> int:
    await insert_rows(database, host, 1)
    row_id: int = await database.fetchval("select max(id) from deliveries")
    for step in PATHS[status]:
        await database.execute(MOVE, row_id, step)
    return row_id


async def test_every_legal_move_works_and_every_other_is_refused(database: Any) -> None:
    for number, (source, target) in enumerate(product(DeliveryStatus, DeliveryStatus)):
        row_id = await a_row(database, source, f"host-{number}:80")
        if target in LEGAL_MOVES[source]:
            await database.execute(MOVE, row_id, target)
        else:
            with pytest.raises(asyncpg.CheckViolationError, match="cannot go from"):
                await database.execute(MOVE, row_id, target)


async def test_nothing_of_a_terminal_row_ever_changes(database: Any) -> None:
    for status in (DeliveryStatus.COMPLETED, DeliveryStatus.FAILED):
        row_id = await a_row(database, status, f"{status}:80")
        before = await database.fetchrow("select * from deliveries where id = $1", row_id)
        for change in ("updated_at = now()", "topic = 'x'", "version = version + 1", "retry_count = 1"):
            with pytest.raises(asyncpg.CheckViolationError):
                await database.execute(f"update deliveries set {change} where id = $1", row_id)
        assert await database.fetchrow("select * from deliveries where id = $1", row_id) == before


ILLEGAL_CHANGES = [
    "version = version",
    "version = version + 2",
    "version = version + 1, idempotency_key = 'another'",
    "version = version + 1, job_id = 'another'",
    "version = version + 1, next_attempt_at = null",
    "version = version + 1, retry_count = 4",
    "version = version + 1, retry_count = -1",
    "version = version + 1, failure_reason = 'early'",
    "version = version + 1, status = 'COMPLETED'",
    "version = version + 1, status = 'FAILED', next_attempt_at = null, finished_at = now()",
    "version = version + 1, status = 'LOST'",
]


async def test_an_open_row_changes_as_it_should_or_not_at_all(database: Any) -> None:
    row_id = await a_row(database, DeliveryStatus.PROCESSING)
    for change in ILLEGAL_CHANGES:
        with pytest.raises(asyncpg.CheckViolationError):
            await database.execute(f"update deliveries set {change} where id = $1", row_id)


async def test_a_new_row_begins_at_the_beginning(database: Any) -> None:
    begin = """insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, url, host, headers,
                                       timeout_seconds, max_retries, status, version)
               values ('j', $1, 't', 1, now(), now(), 'http://a/', 'a:80', '{}', 1, 3, $1, $2)"""
    for status, version in product(DeliveryStatus, (1, 2)):
        if status in FIRST_STATUSES and version == 1:
            await database.execute(begin, status, version)
        else:
            with pytest.raises(asyncpg.CheckViolationError, match="a new delivery is PENDING or PROCESSING"):
                await database.execute(begin, status, version)


async def test_a_key_has_one_delivery_and_a_failed_one_has_one_replay(database: Any) -> None:
    copy = """insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, url, host, headers,
                                      timeout_seconds, max_retries, replay_of)
              select job_id, idempotency_key, topic, sequence, due_at, fired_at, url, host, headers, timeout_seconds,
                     max_retries, $2 from deliveries where id = $1"""
    row_id = await a_row(database, DeliveryStatus.FAILED)
    with pytest.raises(asyncpg.UniqueViolationError):
        await database.execute(copy, row_id, None)
    await database.execute(copy, row_id, row_id)
    with pytest.raises(asyncpg.UniqueViolationError):
        await database.execute(copy, row_id, row_id)


async def test_an_attempt_has_an_answer_or_an_error_and_a_bounded_body(database: Any) -> None:
    row_id = await a_row(database, DeliveryStatus.PROCESSING)
    insert = """insert into delivery_attempts (delivery_id, number, started_at, duration_seconds, status_code, error,
                                               answer) values ($1, 1, now(), 0, $2, $3, $4)"""
    for status_code, error, answer in ((None, None, None), (200, "timeout", None), (200, None, b"x" * 4097)):
        with pytest.raises(asyncpg.CheckViolationError):
            await database.execute(insert, row_id, status_code, error, answer)
    await database.execute(insert, row_id, 200, None, b"x" * 4096)
