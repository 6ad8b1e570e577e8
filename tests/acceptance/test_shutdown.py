"""SIGTERM under load, again and again: every service has two replicas, one of which is always about to be stopped. An
orderly stop costs nothing: every occurrence rings once, every webhook is called once, and nothing is put aside.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from shared.runtime.loops import Stop
from stack.services import SERVICES
from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.delivery_rows import wait_for_deliveries
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import wait_until_none_pending
from tests.support.receiver import a_receiver
from tests.support.services import ServiceProcess, service_process
from tests.support.stores import Site

STOPS = 4  # of each service
SETTINGS = {"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8", "BATCH_SIZE": "20"}


@asynccontextmanager
async def a_steady_load(app: Application, url: str) -> AsyncIterator[list[str]]:
    """Requests, half of them with a webhook, until the block ends. Gives the ids that the broker has confirmed."""
    confirmed: list[str] = []
    enough = Stop()

    async def ask() -> None:
        while not enough.requested:
            job_id = f"job-{len(confirmed)}"
            webhook = {"webhook": {"url": url}} if len(confirmed) % 2 else {}
            await app.send(a_request(id=job_id, at=in_seconds(0.5), **webhook))
            confirmed.append(job_id)
            await asyncio.sleep(0.005)

    asking = asyncio.create_task(ask())
    try:
        yield confirmed
    finally:
        enough.request()  # and not in the middle of a send: the broker would have one that was not counted
        await asyncio.wait_for(asking, PATIENCE)


async def is_at_work(process: ServiceProcess) -> None:
    """It has taken up its work, or there would be nothing to disturb."""

    async def look() -> bool:
        return bool({"consuming", "recovery"} & {line["event"] for line in process.lines()})

    await eventually(look, within=60)


async def stop_and_start(service: str, site: Site, directory: Path, replicas: ExitStack) -> list[int]:
    """The older of two replicas is stopped when a younger one has taken its place. Returns the exit statuses."""
    statuses = []
    older = replicas.enter_context(service_process(service, site, directory, **SETTINGS))
    await is_at_work(older)
    for _ in range(STOPS):
        younger = replicas.enter_context(service_process(service, site, directory, **SETTINGS))
        await is_at_work(younger)
        statuses.append(await asyncio.to_thread(older.terminate))
        assert not older.said("abandoned")
        older = younger
    return statuses


async def test_stopped_again_and_again_under_load_nothing_is_lost_and_nothing_comes_twice(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    for service in SERVICES:
        (tmp_path / service).mkdir()
    async with a_receiver() as receiver:
        with ExitStack() as replicas:
            async with a_steady_load(app, receiver.url) as asked:
                stopping = (stop_and_start(service, site, tmp_path / service, replicas) for service in SERVICES)
                statuses = await asyncio.gather(*stopping)
            await app.hears(len(asked), within=60)
            await wait_until_none_pending(database, within=60)
            odd = [job for job in asked if int(job.removeprefix("job-")) % 2]
            await wait_for_deliveries(database, len(odd), within=60)
            assert await app.count(site.names.parked) == 0
    assert statuses == [[0] * STOPS] * len(SERVICES)
    assert len(asked) > 100, "there was a load"
    rung = Counter(event.content["idempotency_key"] for event in app.heard)
    assert {event.content["id"] for event in app.heard} >= set(asked)
    assert {key: times for key, times in rung.items() if times != 1} == {}
    assert {key: times for key, times in receiver.keys.items() if times != 1} == {}
