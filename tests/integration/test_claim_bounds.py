"""One claim is bounded in messages and in bytes, whatever its jobs ask for; the rest is left for the next."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from prometheus_client import CollectorRegistry

from producer.firing import MAX_BYTES, MAX_MESSAGES, Fired, Firer
from producer.metrics import Metrics
from producer.planning import BURST
from producer.store import BACKLOG, PLANNER
from shared.broker import Broker
from shared.database import open_pool
from shared.publishing import Publisher
from tests.support.application import Application
from tests.support.builders import minutely
from tests.support.jobs import insert_due
from tests.support.stores import Site


@asynccontextmanager
async def a_firer(site: Site) -> AsyncIterator[Firer]:
    metrics = Metrics(CollectorRegistry())
    broker = Broker(site.amqp_url, name="test", names=site.names)
    async with (
        open_pool(site.database_url, "test", 2, **PLANNER) as pool,
        broker.connected(),
        Publisher(broker) as publisher,
    ):
        yield Firer(
            lane=BACKLOG,
            pool=pool,
            publisher=publisher,
            names=site.names,
            metrics=metrics,
            lane_metrics=metrics.of_lane(BACKLOG.name),
            max_batch=500,
            publish_timeout=20,
        )


async def test_a_claim_publishes_no_more_messages_than_its_bound(site: Site, app: Application, database: Any) -> None:
    await insert_due(database, 100, late=timedelta(hours=1), rule=minutely(start_at="2020-01-01T00:00:00Z"))
    async with a_firer(site) as firer:
        fired = await firer.fire_once()
        assert isinstance(fired, Fired)
        assert fired.full, "there is more"
        published = await database.fetchval("select sum(sequence) from jobs")
        assert MAX_MESSAGES - BURST <= published <= MAX_MESSAGES + BURST
        untouched = await database.fetchval("select count(*) from jobs where version = 1")
        assert untouched == 100 - fired.jobs > 0


async def test_a_claim_publishes_no_more_bytes_than_its_bound(site: Site, app: Application, database: Any) -> None:
    await insert_due(database, 100, late=timedelta(hours=1))
    size = 200_000
    await database.execute("update jobs set payload = to_json(repeat('x', $1))", size)
    async with a_firer(site) as firer:
        fired = await firer.fire_once()
        assert isinstance(fired, Fired)
        assert fired.jobs <= MAX_BYTES // size + 1
        while isinstance(await firer.fire_once(), Fired):
            pass
        assert await database.fetchval("select count(*) from jobs where status = 'done'") == 100
