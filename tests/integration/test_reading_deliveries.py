"""Lists of deliveries and of the history have each row once, in their order; most pages are full after a short walk."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shared.contract.history import What
from shared.reading import deliveries, history, jobs
from shared.reading.deliveries import (
    DeliveriesWanted,
    DeliveryPlace,
    DeliveryState,
    list_deliveries,
    newest_deliveries,
)
from shared.reading.history import HistoryWanted, Place, list_changes
from shared.reading.jobs import JobState, Wanted, list_jobs
from tests.support.delivery_rows import insert_rows
from tests.support.job_rows import insert_due

END = """
update deliveries
   set status = case when id % 3 = 0 then 'FAILED' else 'COMPLETED' end, version = 3, next_attempt_at = null,
       failure_reason = case when id % 3 = 0 then 'timeout' end, finished_at = now() - id * interval '1 second'
 where id % 4 <> 0
"""


async def some_deliveries(database: Any) -> None:
    """Insert 40 deliveries with ids from 1 on: every fourth is open, of others every third has failed."""
    for host in ("a", "b"):
        await insert_rows(database, host, 20)
    await database.execute("update deliveries set status = 'PROCESSING', version = 2")
    await database.execute(END)


async def all_ids(database: Any, wanted: DeliveriesWanted, size: int) -> list[int]:
    found: list[int] = []
    after: DeliveryPlace | None = None
    while True:
        page = await list_deliveries(database, wanted, size, after)
        found += [one.id for one in page.deliveries]
        if page.next is None:
            return found
        after = DeliveryPlace.parse(str(page.next))


@pytest.mark.parametrize("rows_read", [1, 3, 20_000])
async def test_pages_of_deliveries_leave_none_out(
    database: Any, monkeypatch: pytest.MonkeyPatch, rows_read: int
) -> None:
    await some_deliveries(database)
    monkeypatch.setattr(deliveries, "MAX_DELIVERY_ROWS_READ", rows_read)
    monkeypatch.setattr(deliveries, "ROWS_FOR_EACH", 2)
    ended = [number for number in range(1, 41) if number % 4]
    for size in (1, 3, 100):
        assert await all_ids(database, DeliveriesWanted(DeliveryState.FAILED), size) == [n for n in ended if n % 3 == 0]
        completed = await all_ids(database, DeliveriesWanted(DeliveryState.COMPLETED, host="b"), size)
        assert completed == [n for n in ended if n % 3 and n > 20]
        assert sorted(await all_ids(database, DeliveriesWanted(DeliveryState.OPEN), size)) == list(range(4, 41, 4))
        assert await all_ids(database, DeliveriesWanted(DeliveryState.COMPLETED, "job-1"), size) == [1]
    assert [one.id for one in await newest_deliveries(database, "job-1", 10)] == [21, 1]


@pytest.mark.parametrize("rows_read", [1, 3, 20_000])
async def test_pages_of_the_history_leave_none_out(
    database: Any, monkeypatch: pytest.MonkeyPatch, rows_read: int
) -> None:
    await database.execute("""
        insert into history (at, job_id, what, operator)
        select now() - n * interval '1 ms', 'job-' || n,
               case n % 3 when 0 then 'paused' when 1 then 'fired' else 'resumed' end,
               case when n % 2 = 0 then 'alice' end
          from generate_series(1, 30) as n""")
    monkeypatch.setattr(history, "MAX_HISTORY_ROWS_READ", rows_read)
    monkeypatch.setattr(history, "ROWS_FOR_EACH", 2)
    for size in (1, 3, 100):
        found: list[str] = []
        after: Place | None = None
        while True:
            page = await list_changes(database, HistoryWanted(by="ALI", what=(What.PAUSED,)), size, after)
            found += [one.job_id for one in page.changes]
            if page.next is None:
                break
            after = Place.parse(str(page.next))
        assert found == [f"job-{n}" for n in range(1, 31) if n % 6 == 0]


class Counting:
    """Passes queries on, and adds up how many rows each may read."""

    def __init__(self, database: Any, number: int) -> None:
        self._database = database
        self._number = number
        self.rows = 0
        self.fetchval = database.fetchval

    async def fetch(self, statement: str, *given: Any) -> Any:
        self.rows += given[self._number]
        return await self._database.fetch(statement, *given)


@pytest.mark.parametrize(
    ("lists", "number"),
    [
        (lambda database: list_jobs(database, Wanted(JobState.PENDING, search="job-"), 5), 6),
        (lambda database: list_deliveries(database, DeliveriesWanted(DeliveryState.FAILED), 5), 6),
        (lambda database: list_changes(database, HistoryWanted(search="job-"), 5), 5),
    ],
)
async def test_a_page_that_is_full_at_once_takes_a_short_walk(
    database: Any, lists: Callable[[Any], Awaitable[Any]], number: int
) -> None:
    await some_deliveries(database)
    await insert_due(database, 10)
    await database.execute(
        "insert into history (job_id, what) select 'job-' || n, 'paused' from generate_series(1, 9) n"
    )
    counting = Counting(database, number)
    page = await lists(counting)
    assert page.next is not None
    assert counting.rows == 5 * jobs.ROWS_FOR_EACH
