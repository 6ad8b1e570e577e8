"""Bulks that a test carries on itself, step by step, on a database of its own, as the consumer's role."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from consumer.bulks import BulkWork
from consumer.commands.parse import Bulk
from consumer.metrics import Metrics
from consumer.store.bulks import store_bulk
from shared.amqp.connection import Broker
from shared.amqp.publisher import Publisher
from shared.contract.history import HistoryLevel
from shared.contract.labels import write_labels
from shared.contract.messages import BulkAction
from shared.postgres.pool import open_pool
from shared.runtime.wakeup import Wakeup
from tests.support.stores import Site


@dataclass(frozen=True, slots=True)
class Bulks:
    """No bulk wants an answer: the publisher has no connection."""

    work: BulkWork

    async def store(self, bulk_id: str, action: str, *, operators: tuple[str, ...] = (), **fields: Any) -> None:
        labels = fields.pop("labels", None)
        bulk = Bulk(bulk_id, BulkAction(action), write_labels(labels) if labels else None, **fields)
        async with self.work.pool.acquire() as connection, connection.transaction():
            await store_bulk(connection, bulk, operators)

    async def run(self, bulk_id: str, action: str, **fields: Any) -> tuple[int, int]:
        """Carry a bulk out to its end. Return how many jobs it matched and changed."""
        await self.store(bulk_id, action, **fields)
        while await self.work.step_once():
            pass
        async with self.work.pool.acquire() as connection:
            row = await connection.fetchrow("select * from bulks where id = $1", bulk_id)
        assert row is not None
        assert row["answered_at"] is not None
        return row["matched"], row["changed"]


@asynccontextmanager
async def some_bulks(site: Site, jobs_a_step: int = 3) -> AsyncIterator[Bulks]:
    publisher = Publisher(Broker(site.amqp_url, name="unused", names=site.names))
    async with open_pool(site.database_url_of("consumer"), "test", size=4) as pool:
        metrics = Metrics(CollectorRegistry())
        yield Bulks(BulkWork(pool, publisher, metrics, 5.0, HistoryLevel.ALL, Wakeup(), jobs_a_step))
