"""pgqueuer: batches of 1,000, a look every 10 ms at the latest, on uvloop."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.models import Job  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

from bench.child import arguments
from bench.peers.drivers import course
from bench.peers.drivers.handling import Handle

BATCH = 1000
LOOK_EVERY = timedelta(milliseconds=10)


class Pgqueuer:
    async def install(self) -> None:
        async with _a_connection() as connection:
            await Queries(AsyncpgDriver(connection)).install()

    async def add(self, first: int, due_at: Sequence[float]) -> None:
        async with _a_connection() as connection:
            queries, now = Queries(AsyncpgDriver(connection)), time.time()
            for start in range(0, len(due_at), BATCH):
                batch = due_at[start : start + BATCH]
                payloads = [str(first + start + n).encode() for n in range(len(batch))]
                after = [timedelta(seconds=due - now) for due in batch]
                await queries.enqueue(["ring"] * len(batch), payloads, [0] * len(batch), after)

    @asynccontextmanager
    async def working(self, handle: Handle) -> AsyncIterator[None]:
        async with _a_connection() as connection:
            queue = PgQueuer.from_asyncpg_connection(connection)
            queue.qm.min_dequeue_poll_interval = LOOK_EVERY

            @queue.entrypoint("ring")  # type: ignore[untyped-decorator]
            async def ring(job: Job) -> None:
                await handle(int(job.payload or b""))

            worker = asyncio.create_task(queue.qm.run(batch_size=BATCH, dequeue_timeout=LOOK_EVERY))
            try:
                yield
            finally:
                queue.qm.shutdown.set()
                await asyncio.wait([worker], timeout=5)


@asynccontextmanager
async def _a_connection() -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
    connection = await asyncpg.connect(arguments()["database_url"])
    try:
        yield connection
    finally:
        await connection.close()


if __name__ == "__main__":
    course.run(Pgqueuer())
