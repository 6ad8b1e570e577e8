"""APScheduler 3 with its jobs in Postgres: a timer in one process."""

import asyncio
from datetime import UTC, datetime, timedelta

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore  # type: ignore[import-not-found]
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-not-found]

from bench.child import arguments, timed
from bench.peers.drivers.apscheduler_ring import Rings, ring, rings
from bench.peers.drivers.publishing import a_publisher


async def main() -> None:
    given = arguments()
    url = given["database_url"].replace("postgresql://", "postgresql+psycopg://")
    scheduler = AsyncIOScheduler(jobstores={"default": SQLAlchemyJobStore(url=url)}, timezone=UTC)
    scheduler.start(paused=True)
    due_at = datetime.now(UTC) - timedelta(seconds=1)
    for number in range(given["count"]):
        scheduler.add_job(ring, "date", run_date=due_at, id=f"job-{number}", misfire_grace_time=None)
    async with a_publisher(given["amqp_url"], given["queue"]) as publish:
        rings.append(Rings(publish, given["count"]))

        async def run() -> None:
            scheduler.resume()
            await rings[0].finished.wait()

        await timed(given["count"], run)
    scheduler.shutdown(wait=False)


if __name__ == "__main__":
    asyncio.run(main())
