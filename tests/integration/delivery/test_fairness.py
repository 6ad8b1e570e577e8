"""Hosts beside one another: however much waits for one, and however it turns out, the others get their turn."""

import asyncio
import time
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from delivery.breaker import BreakerPolicy
from delivery.dispatching import LONGEST_WAIT
from delivery.hosts import Hosts
from tests.support.deliveries import ends, insert_rows
from tests.support.dispatching import a_claimer
from tests.support.eventually import eventually
from tests.support.receiver import Call, a_receiver
from tests.support.services import running_delivery
from tests.support.stores import Site

QUICK = 0.005
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
    hosts = Hosts(max_in_flight=256, max_per_host=16, policy=BreakerPolicy())
    waiting = dict.fromkeys([*quick, "z-new:80"], 0)

    async def claim_and_work_off() -> None:
        for delivery in await claimer.claim_once():
            waiting[delivery.host] += 1
        for host in quick:
            for _ in range(min(16, waiting[host])):
                waiting[host] -= 1
                hosts.start(host)
                hosts.hang_up(host)
                hosts.report(host, well=True, seconds=QUICK, now=0.0)
                hosts.write_off()

    async with a_claimer(site, hosts) as claimer:
        for _ in range(20):
            await claim_and_work_off()
        assert sum(waiting.values()) > 256, "the quick ones have rows ahead"
        await insert_rows(database, "z-new:80", 1)
        for _ in range(3):
            await claim_and_work_off()
        assert waiting["z-new:80"] == 1


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
            end, number = time.monotonic() + 2.5 * LONGEST_WAIT, 0
            while time.monotonic() < end:
                number += 1
                await insert(database, f"good-{number}-", good.url, 1)
                await ends(database, f"good-{number}-1", "COMPLETED")
            changes = await database.fetchval(
                "select sum(version - 1) from deliveries where retry_count = 0 and finished_at is null"
            )
    assert changes < 1000, "its rows were claimed, given back, and left alone"
