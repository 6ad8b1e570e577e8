"""Parts of the delivery service for tests that claim or store rows without webhook calls and without a recorder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from delivery.dispatch.circuit_breaker import BreakerPolicy
from delivery.dispatch.claimer import Claimer
from delivery.dispatch.dispatcher import Dispatcher
from delivery.dispatch.local_queue import LocalQueue
from delivery.intake import DueHandler
from delivery.metrics import Metrics
from delivery.store.claims import DELIVERY_PLANNER_SETTINGS
from shared.postgres.pool import Pool, open_pool
from tests.support.stores import Site

UNUSED: Any = None
LEASE_MARGIN = 30.0


def a_queue(max_calls: int = 10, max_calls_per_host: int = 10, failures: int = 10) -> LocalQueue:
    return LocalQueue(max_calls, max_calls_per_host, BreakerPolicy(failures=failures))


@asynccontextmanager
async def a_claimer(site: Site, queue: LocalQueue, connections: int = 1) -> AsyncIterator[Claimer]:
    async with open_pool(
        site.database_url_of("delivery"), "claiming", connections, **DELIVERY_PLANNER_SETTINGS
    ) as pool:
        yield Claimer(pool, queue, LEASE_MARGIN)


def a_dispatcher(claimer: Claimer, attempts: Any = UNUSED, recorder: Any = UNUSED) -> Dispatcher:
    return Dispatcher(
        claimer=claimer,
        attempts=attempts,
        recorder=recorder,
        queue=claimer.queue,
        metrics=Metrics(CollectorRegistry()),
    )


def a_handler(pool: Pool) -> DueHandler:
    return DueHandler(
        pool=pool,
        publisher=UNUSED,
        parking="",
        metrics=Metrics(CollectorRegistry()),
        on_stored=lambda _: None,
        publish_timeout=1.0,
    )


def call_all(queue: LocalQueue, seconds: float = 0.005) -> list[str]:
    """Start a call for every row that may be called, and end it at once with success. Returns the hosts called."""
    hosts = [leased.delivery.host for leased in queue.start_all(0.0)]
    for host in hosts:
        queue.end_call(host)
        queue.report(host, healthy=True, seconds=seconds, now=0.0)
        queue.note_written(1)
    return hosts
