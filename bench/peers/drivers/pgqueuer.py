"""pgqueuer: batches of 1,000, on uvloop."""

import asyncpg
import uvloop
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.models import Job  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]
from pgqueuer.types import QueueExecutionMode  # type: ignore[import-not-found]

from bench.child import arguments, timed
from bench.peers.drivers.publishing import a_publisher

BATCH = 1000


async def main() -> None:
    given = arguments()
    connection = await asyncpg.connect(given["database_url"])
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    for start in range(0, given["count"], BATCH):
        size = min(BATCH, given["count"] - start)
        await queries.enqueue(["ring"] * size, [b"{}"] * size, [0] * size)
    async with a_publisher(given["amqp_url"], given["queue"]) as publish:
        worker = PgQueuer.from_asyncpg_connection(connection)

        @worker.entrypoint("ring")  # type: ignore[untyped-decorator]
        async def ring(_: Job) -> None:
            await publish()

        await timed(given["count"], lambda: worker.qm.run(batch_size=BATCH, mode=QueueExecutionMode.drain))
    await connection.close()


if __name__ == "__main__":
    uvloop.run(main())
