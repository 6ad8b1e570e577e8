"""Parts of the delivery service by themselves: to claim and to store with, while nobody calls and nobody records."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from delivery.admission import Admission
from delivery.claiming import Claimer
from delivery.dispatching import Dispatcher
from delivery.hosts import Hosts
from delivery.intake import DueHandler
from delivery.metrics import Metrics
from delivery.store import PLANNER
from shared.bell import Bell
from shared.database import open_pool
from tests.support.stores import Site

NOBODY: Any = None
LEASE_MARGIN = 30.0


@asynccontextmanager
async def a_claimer(site: Site, hosts: Hosts, connections: int = 1) -> AsyncIterator[Claimer]:
    async with open_pool(site.database_url, "claiming", connections, **PLANNER) as pool:
        yield Claimer(pool, hosts, Admission(hosts), LEASE_MARGIN)


def a_dispatcher(claimer: Claimer, attempter: Any = NOBODY, recorder: Any = NOBODY) -> Dispatcher:
    return Dispatcher(
        claimer=claimer,
        attempter=attempter,
        recorder=recorder,
        hosts=claimer.hosts,
        admission=claimer.admission,
        metrics=Metrics(CollectorRegistry()),
        bell=Bell(),
    )


def a_handler(dispatcher: Dispatcher) -> DueHandler:
    return DueHandler(
        pool=dispatcher.claimer.pool,
        publisher=NOBODY,
        parking="",
        metrics=dispatcher.metrics,
        dispatcher=dispatcher,
        lease_margin=LEASE_MARGIN,
        publish_timeout=1.0,
    )
