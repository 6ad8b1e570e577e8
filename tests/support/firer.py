"""A `Firer` of the producer without its loop: the test calls it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from producer.firing import Firer
from producer.job_work import JobWork
from producer.metrics import Metrics
from producer.priority import Precedence
from producer.store.lanes import OVERDUE, PRODUCER_PLANNER_SETTINGS, Lane
from shared.amqp.connection import Broker
from shared.amqp.publisher import Publisher
from shared.postgres.pool import open_pool
from tests.support.stores import Site


@asynccontextmanager
async def a_firer(site: Site, lane: Lane = OVERDUE) -> AsyncIterator[Firer]:
    metrics = Metrics(CollectorRegistry())
    broker = Broker(site.amqp_url, name="test", names=site.names)
    async with (
        open_pool(site.database_url_of("producer"), "test", 2, **PRODUCER_PLANNER_SETTINGS) as pool,
        broker.connected(),
        Publisher(broker) as publisher,
    ):
        yield Firer(
            work=JobWork(lane=lane, names=site.names, metrics=metrics),
            pool=pool,
            publisher=publisher,
            precedence=Precedence(),
            lane_metrics=metrics.of_lane(lane.name),
            max_batch=500,
            publish_timeout=20,
        )
