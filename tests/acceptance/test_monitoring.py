"""A real Prometheus scrapes real services under a little of every kind of work. What the dashboards and alerts ask, it
can answer.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from stack import prometheus
from stack.ports import LOOPBACK, free_port
from stack.prometheus import RABBITMQ_PLUGIN, Prometheus
from stack.services import SERVICES
from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.delayed import a_delayed_sender
from tests.support.eventually import PATIENCE, eventually
from tests.support.job_rows import insert_due
from tests.support.metrics import Metrics
from tests.support.monitoring import RULES, expressions
from tests.support.promql import selectors
from tests.support.receiver import a_receiver, answering
from tests.support.services import service_process
from tests.support.stores import Site, Stores

WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Answers:
    """Prometheus' HTTP interface."""

    client: aiohttp.ClientSession

    async def query(self, expression: str) -> list[float]:
        async with self.client.post("/api/v1/query", data={"query": expression}) as response:
            answer = await response.json()
        assert answer["status"] == "success", f"{expression}: {answer}"
        return [float(series["value"][1]) for series in answer["data"]["result"]]

    async def rules(self) -> list[dict[str, Any]]:
        async with self.client.get("/api/v1/rules") as response:
            groups = (await response.json())["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    async def unanswered(self, expressions: list[str]) -> list[str]:
        """Those that bring no number back."""
        return [text for text in expressions if all(map(math.isnan, await self.query(text)))]


@asynccontextmanager
async def watched_services(stores: Stores, site: Site, directory: Path) -> AsyncIterator[Answers]:
    assert stores.rabbitmq
    ports = {name: free_port() for name in SERVICES}
    broker = f"{LOOPBACK}:{stores.rabbitmq.plugin_ports[RABBITMQ_PLUGIN]}"
    targets = {name: [f"{LOOPBACK}:{port}"] for name, port in ports.items()}
    targets |= {"rabbitmq": [broker], "rabbitmq-queues": [broker]}
    loose = {"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8", "RETRY_BASE_SECONDS": "0.05"}
    with ExitStack() as running:
        for name, port in ports.items():
            running.enter_context(service_process(name, site, directory, METRICS_PORT=str(port), **loose))
        watcher = running.enter_context(Prometheus(directory / "stack", targets, every="1s"))
        async with aiohttp.ClientSession(watcher.url, timeout=aiohttp.ClientTimeout(PATIENCE)) as client:
            yield Answers(client)


@asynccontextmanager
async def a_little_of_everything(site: Site, app: Application, database: Any) -> AsyncIterator[None]:
    """Over and over, until the block ends: a rate needs more than one point in time."""
    full = "monitored-and-full"
    await app.binds(full, "due.event.full", **{"x-max-length": 0, "x-overflow": "reject-publish"})
    await insert_due(database, 1, prefix="refused-", topic="full")

    async def work() -> None:
        takes_nothing = {"x-max-length": 0, "x-overflow": "reject-publish"}
        async with (
            a_receiver() as well,
            a_receiver(answering(503, 200)) as shaky,
            a_receiver(answering(404)) as gone,
            a_delayed_sender(site, owner="my-app") as delayed,
            a_delayed_sender(site, takes_nothing, owner="my-app") as refused,
        ):
            for turn in count():
                for milliseconds in (1, 3_600_000):
                    await delayed.send(headers={"x-delay": milliseconds})
                await refused.send(headers={"x-delay": 1})
                for number, hook in enumerate((well, shaky, gone)):
                    name = f"hook-{turn}-{number}"
                    await app.request(a_request(id=name, at=in_seconds(-1), webhook={"url": hook.url}))
                await app.request(a_request(id=f"later-{turn}"))
                await app.request(a_request(id=f"later-{turn}"))
                await app.request(a_request(id=f"later-{turn}", revision=2))
                await app.cancel(f"later-{turn}")
                await app.request(a_request(id="wrong", topic="not a topic"))
                await insert_due(database, 3, prefix=f"late-{turn}-", late=timedelta(minutes=2))
                await shaky.called(2 * (turn + 1))

    working = asyncio.create_task(work())
    try:
        yield
        assert not working.done(), working.exception()
    finally:
        working.cancel()
        await asyncio.wait({working})
        await app.channel.queue_delete(full)


async def test_every_query_of_dashboards_and_alerts_has_a_result(
    stores: Stores, site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    assert prometheus.installed(), "prometheus is missing: make prometheus installs it"
    panels = [text.replace("$__rate_interval", "30s") for _, text in expressions()]
    alerts = [rule["expr"] for rule in RULES]
    # An alert is silent while all is well: what it is about must be there all the same.
    waiting = [*panels, *{selector for text in panels + alerts for selector in selectors(text)}]
    async with watched_services(stores, site, tmp_path) as answers, a_little_of_everything(site, app, database):

        async def all_answered() -> bool:
            waiting[:] = await answers.unanswered(waiting)
            assert waiting == []
            return True

        await eventually(all_answered, WITHIN)
        for text in alerts:
            await answers.query(text)

        async def all_evaluated() -> bool:
            loaded = {rule["name"]: rule["health"] for rule in await answers.rules()}
            assert loaded == {rule["alert"]: "ok" for rule in RULES}
            return True

        await eventually(all_evaluated, WITHIN)


@pytest.mark.own_stores
async def test_readiness_follows_the_broker_and_the_database(
    stores: Stores, site: Site, app: Application, tmp_path: Path
) -> None:
    """False when one of them is lost, true again when it is back; and Prometheus would see the same."""
    if stores.rabbitmq is None or stores.postgres is None:
        pytest.skip("the tests did not start the stores")
    ports = {name: free_port() for name in SERVICES}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as client:

        async def all_say(**expected: bool) -> None:
            async def look() -> bool:
                for name, port in ports.items():
                    try:
                        async with client.get(f"http://{LOOPBACK}:{port}/readyz") as answer:
                            said = (answer.status, await answer.json())
                    except aiohttp.ClientConnectionError as error:
                        raise AssertionError(f"{name} does not answer") from error
                    assert said == (200 if all(expected.values()) else 503, expected), name
                return True

            await eventually(look, WITHIN)
            for port in ports.values():
                for dependency, is_up in expected.items():
                    assert await Metrics(port).value("dependency_up", dependency=dependency) == float(is_up)

        with ExitStack() as running:
            for name, port in ports.items():
                running.enter_context(service_process(name, site, tmp_path, METRICS_PORT=str(port)))
            await all_say(broker=True, database=True)

            await asyncio.to_thread(stores.postgres.stop, "immediate")
            await all_say(broker=True, database=False)
            await asyncio.to_thread(stores.postgres.start)
            await all_say(broker=True, database=True)

            await asyncio.to_thread(stores.rabbitmq.sync_queue_register)
            await asyncio.to_thread(stores.rabbitmq.kill)
            await all_say(broker=False, database=True)
            await asyncio.to_thread(stores.rabbitmq.start)
            await all_say(broker=True, database=True)
