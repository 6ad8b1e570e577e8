"""Hosts beside one another: however much waits for one, and however it turns out, the others get their turn."""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from delivery.dispatch.claimer import MAX_ROWS_READ
from delivery.dispatch.local_queue import MAX_WAIT_SECONDS, LeasedDelivery
from delivery.model import DeliveryUpdate
from tests.support.builders import a_delivery
from tests.support.delivery_parts import a_claimer, a_dispatcher, a_queue, call_all
from tests.support.delivery_rows import insert_rows, wait_for_delivery
from tests.support.eventually import eventually
from tests.support.receiver import Call, a_receiver
from tests.support.services import running_delivery
from tests.support.stores import Site

INSERT = """
insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers,
                        timeout_seconds, max_retries, next_attempt_at)
select $1 || n, $1 || n, 'hooks', 1, now(), now(), '{}', $2, $3, '{}', 60, 3,
       now() - make_interval(secs => $5) + n * interval '1 ms'
  from generate_series(1, $4::int) as n
"""


async def insert(database: Any, name: str, url: str, number: int, late: float = 0.0) -> None:
    await database.execute(INSERT, name, url, urlsplit(url).netloc, number, late)


async def test_a_new_host_does_not_wait_for_the_backlog_of_quick_ones(site: Site, database: Any) -> None:
    """Five quick hosts work off what an outage left. A sixth one, last in the order of names, gets one delivery."""
    quick = [f"quick-{number}:80" for number in range(5)]
    for host in quick:
        await insert_rows(database, host, 3000, due_in=-100)
    queue = a_queue(max_calls=256, max_calls_per_host=16)
    called: set[str] = set()

    async def claim_and_work_off() -> None:
        await claimer.claim_once()
        called.update(call_all(queue))

    async with a_claimer(site, queue) as claimer:
        for _ in range(20):
            await claim_and_work_off()
        assert queue.counts().waiting > 256, "the quick ones have rows ahead"
        await insert_rows(database, "z-new:80", 1)
        for _ in range(3):
            await claim_and_work_off()
        assert "z-new:80" in called


async def test_a_quick_host_that_begins_to_hang_harms_only_itself(site: Site, database: Any) -> None:
    """It answers quickly, and then not at all. Its rows are not claimed and given back again and again meanwhile."""
    calls = 0

    async def turn_bad(_: Call) -> web.Response:
        nonlocal calls
        calls += 1
        if calls > 400:
            await asyncio.sleep(30)
        return web.Response()

    async with a_receiver(turn_bad) as bad, a_receiver() as good:
        await insert(database, "bad-", bad.url, 3000, late=100.0)
        async with running_delivery(site, max_in_flight=64, max_in_flight_per_host=16, shutdown_grace_seconds=3.5):

            async def hangs() -> bool:
                return calls > 400

            await eventually(hangs)
            # For longer than rows wait here before they are given back, twice.
            end, number = time.monotonic() + 2.5 * MAX_WAIT_SECONDS, 0
            while time.monotonic() < end:
                number += 1
                await insert(database, f"good-{number}-", good.url, 1)
                await wait_for_delivery(database, f"good-{number}-1", "COMPLETED")
            changes = await database.fetchval(
                "select sum(version - 1) from deliveries where retry_count = 0 and finished_at is null"
            )
    assert changes < 1000, "its rows were claimed, given back, and left alone"


async def test_new_rows_do_not_overtake_old_ones_behind_the_long_queue_of_a_dead_host(
    site: Site, database: Any
) -> None:
    """More rows of a dead host than a claim looks at, then those of one that has room for four at a time."""
    await insert_rows(database, "dead:80", MAX_ROWS_READ + 100, due_in=-100)
    await insert(database, "old-", "http://alive:80/", 10, late=50.0)
    queue = a_queue(max_calls=20, max_calls_per_host=4, failures=1)
    queue.report("dead:80", healthy=False, seconds=1.0, now=time.monotonic())
    claimed: list[set[str]] = []
    async with a_claimer(site, queue) as claimer:
        for number in range(4):
            await insert(database, f"new-{number}-", "http://alive:80/", 1, late=5.0 - number)
            claimed.append({delivery.job_id for delivery in (await claimer.claim_once()).rows})
            call_all(queue, seconds=1.0)
    by_age = [*(f"old-{n}" for n in range(1, 11)), *(f"new-{n}-1" for n in range(4))]
    assert claimed == [set(by_age[:4]), set(by_age[4:8]), set(by_age[8:12]), set(by_age[12:])]


async def test_waiting_rows_begin_when_a_call_to_any_host_ends(site: Site, database: Any) -> None:
    """The end of the call leads to the start: in this test no claim would for an hour."""
    queue = a_queue(max_calls=2, max_calls_per_host=2)
    calls = CallsByHand()
    async with a_claimer(site, queue) as claimer:
        dispatcher = a_dispatcher(claimer, attempts=calls, recorder=calls)
        async with asyncio.TaskGroup() as tasks:
            dispatcher._call_tasks = tasks
            with queue.reservation(time.monotonic()) as reservation:
                reservation.add(
                    [a_delivery(id=n, host=host) for n, host in enumerate(("a:80", "a:80", "b:80", "c:80"))]
                )
                reservation.commit(time.monotonic())
            dispatcher._start_calls()
            for host in ("a:80", "b:80", "c:80"):

                async def under_way(host: str = host) -> bool:
                    return host in calls.under_way

                await eventually(under_way)
                calls.end(host)
            calls.end("a:80")
    given_back = [(result.attempt, result.pause) for result in calls.updates]
    assert given_back == [(None, timedelta(0))] * 4, "due at once for another replica, not when their leases are over"


async def test_rows_that_will_wait_for_a_quick_host_take_no_room_from_other_hosts(site: Site, database: Any) -> None:
    """They are older, and more than all calls that are allowed: a claim brings the others' rows all the same."""
    queue = a_queue(max_calls=64, max_calls_per_host=16)
    for _ in range(20):
        queue.report("quick:80", healthy=True, seconds=0.001, now=time.monotonic())
    await insert_rows(database, "quick:80", 500, due_in=-100)
    async with a_claimer(site, queue) as claimer:
        first = await claimer.claim_once()  # of a host that has no rows here yet: no more than may be called
        await insert_rows(database, "other:80", 5, due_in=-1)
        claim = await claimer.claim_once()
    hosts = Counter(delivery.host for delivery in claim.rows)
    assert len(first.rows) == 16
    assert hosts["quick:80"] >= 64 - 16, "all that could be called, and more"
    assert hosts["other:80"] == 5


class CallsByHand:
    """Stands in for AttemptRunner and Recorder: a call ends when the test says so, too late for its lease."""

    def __init__(self) -> None:
        self.under_way: dict[str, list[asyncio.Event]] = {}
        self.updates: list[DeliveryUpdate] = []

    async def run(self, leased: LeasedDelivery) -> None:
        ended = asyncio.Event()
        self.under_way.setdefault(leased.delivery.host, []).append(ended)
        await ended.wait()

    def end(self, host: str) -> None:
        self.under_way[host].pop().set()

    def submit(self, update: DeliveryUpdate) -> None:
        self.updates.append(update)
