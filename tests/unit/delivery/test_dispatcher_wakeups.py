"""When calls that end make the dispatcher claim again: when there may be rows that now have room, and not for each call
while the table has only rows of hosts that are down.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from delivery.dispatch.claimer import Claim, Claimer
from delivery.dispatch.dispatcher import Dispatcher
from delivery.dispatch.local_queue import LocalQueue
from delivery.model import DeliveryUpdate, given_back
from shared.runtime.loops import Stop
from tests.support.builders import a_delivery
from tests.support.delivery_parts import a_dispatcher, a_queue
from tests.support.eventually import eventually


class EmptyTable:
    """A claimer that finds only rows of hosts without room."""

    def __init__(self, queue: LocalQueue) -> None:
        self.queue = queue
        self.claims = 0

    async def claim_once(self) -> Claim:
        self.claims += 1
        return Claim([], left_rows=True)

    async def seconds_until_next(self) -> float | None:
        return None


class ClaimBesideFailures:
    """A claimer whose first claim commits a row of a host just after the breaker of the host has opened."""

    def __init__(self, queue: LocalQueue) -> None:
        self.queue = queue
        self.claims = 0

    async def claim_once(self) -> Claim:
        self.claims += 1
        if self.claims > 1:
            return Claim([], left_rows=False)
        with self.queue.reservation(time.monotonic()) as reservation:
            reservation.add([a_delivery(host="down:80")])
            self.queue.report("down:80", healthy=False, seconds=1.0, now=time.monotonic())
            reservation.commit(time.monotonic())
        return Claim(reservation.rows, left_rows=False)

    async def seconds_until_next(self) -> float | None:
        return None


class Updates:
    """A recorder that keeps what it is given."""

    def __init__(self) -> None:
        self.submitted: list[DeliveryUpdate] = []

    def submit(self, update: DeliveryUpdate) -> None:
        self.submitted.append(update)


@asynccontextmanager
async def running(table: EmptyTable, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dispatcher]:
    """The loop of a dispatcher that claims only when something wakes it, after its first claim."""
    monkeypatch.setattr("delivery.dispatch.dispatcher.CLAIM_POLL_SECONDS", 3600.0)
    monkeypatch.setattr("delivery.dispatch.dispatcher.EMPTY_CLAIM_PAUSE_SECONDS", 3600.0)
    dispatcher, stop = a_dispatcher(cast("Claimer", table)), Stop()
    loop = asyncio.create_task(dispatcher._dispatch_until_stopped(stop))
    await eventually(lambda: has_claimed(table, 1))
    yield dispatcher
    stop.request()
    await loop


async def has_claimed(table: EmptyTable, times: int) -> bool:
    return table.claims >= times


async def test_calls_that_end_do_not_claim_each_beside_rows_of_a_host_that_is_down(monkeypatch: Any) -> None:
    table = EmptyTable(a_queue())
    async with running(table, monkeypatch) as dispatcher:
        for _ in range(100):
            dispatcher._claim_after_call("well:80", was_full=False)
            await asyncio.sleep(0)
        assert table.claims == 1, "the next claim waits for its pause"
        dispatcher.rows_stored(["well:80"])
        await eventually(lambda: has_claimed(table, 2))


async def test_a_call_that_ends_makes_room_for_any_host_if_all_calls_were_under_way(monkeypatch: Any) -> None:
    queue = a_queue(max_calls=1, max_calls_per_host=1, failures=1)
    table = EmptyTable(queue)
    async with running(table, monkeypatch) as dispatcher:
        with queue.reservation(time.monotonic()) as reservation:
            reservation.add([a_delivery(host="down:80")])
            reservation.commit(time.monotonic())
        [leased] = queue.start_all(time.monotonic())
        queue.report("down:80", healthy=False, seconds=1.0, now=time.monotonic())
        queue.end_call(leased.delivery.host)
        dispatcher._claim_after_call("down:80", was_full=True)
        await eventually(lambda: has_claimed(table, 2))


async def test_a_row_claimed_while_the_breaker_of_its_host_opened_is_given_back_at_once() -> None:
    queue, recorder = a_queue(failures=1), Updates()
    dispatcher = a_dispatcher(cast("Claimer", ClaimBesideFailures(queue)), recorder=recorder)
    await dispatcher._claim_and_start()
    assert recorder.submitted == [given_back(a_delivery(host="down:80"))]
