"""procrastinate: one worker, 100 jobs at a time, a look every 100 ms besides its notifications."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import groupby

from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]

from bench.child import arguments
from bench.peers.drivers import course
from bench.peers.drivers.handling import Handle, nothing

CONCURRENCY = 100
LOOK_EVERY = 0.1


class Procrastinate:
    async def install(self) -> None:
        async with _an_app(lambda _: nothing()) as app:
            await app.schema_manager.apply_schema_async()

    async def add(self, first: int, due_at: Sequence[float]) -> None:
        async with _an_app(lambda _: nothing()) as app:
            # In batches of those that are due together, as it can.
            for due, group in groupby(enumerate(due_at, first), key=lambda numbered: numbered[1]):
                later = app.tasks["ring"].configure(schedule_at=datetime.fromtimestamp(due, UTC))
                await later.batch_defer_async(*({"number": number} for number, _ in group))

    @asynccontextmanager
    async def working(self, handle: Handle) -> AsyncIterator[None]:
        async with _an_app(handle) as app:
            worker = asyncio.create_task(
                app.run_worker_async(
                    concurrency=CONCURRENCY,
                    fetch_job_polling_interval=LOOK_EVERY,
                    install_signal_handlers=False,
                    shutdown_graceful_timeout=1,
                )
            )
            try:
                yield
            finally:
                await course.ended(worker)


@asynccontextmanager
async def _an_app(handle: Handle) -> AsyncIterator[App]:
    app = App(connector=PsycopgConnector(conninfo=arguments()["database_url"], max_size=20))

    @app.task(name="ring")  # type: ignore[untyped-decorator]
    async def ring(number: int) -> None:
        await handle(number)

    async with app.open_async():
        yield app


if __name__ == "__main__":
    course.run(Procrastinate())
