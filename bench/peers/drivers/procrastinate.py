"""procrastinate: one worker, 100 jobs at a time."""

import asyncio

from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]

from bench.child import arguments, timed
from bench.peers.drivers.publishing import a_publisher

CONCURRENCY = 100


async def main() -> None:
    given = arguments()
    app = App(connector=PsycopgConnector(conninfo=given["database_url"], max_size=20))
    async with app.open_async(), a_publisher(given["amqp_url"], given["queue"]) as publish:
        await app.schema_manager.apply_schema_async()

        @app.task(name="ring")  # type: ignore[untyped-decorator]
        async def ring(number: int) -> None:
            await publish()

        await ring.batch_defer_async(*({"number": number} for number in range(given["count"])))
        await timed(
            given["count"],
            lambda: app.run_worker_async(concurrency=CONCURRENCY, wait=False, install_signal_handlers=False),
        )


if __name__ == "__main__":
    asyncio.run(main())
