"""APScheduler 3 with its jobs in Postgres: a timer in one process. Whatever is due is taken from the store in one pass,
during which its loop does nothing else.
"""

import pickle
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime

from apscheduler.job import Job  # type: ignore[import-not-found]
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore  # type: ignore[import-not-found]
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-not-found]
from apscheduler.triggers.date import DateTrigger  # type: ignore[import-not-found]

from bench.child import arguments
from bench.peers.drivers import course
from bench.peers.drivers.apscheduler_ring import handles, ring
from bench.peers.drivers.handling import Handle

BATCH = 1000


class Apscheduler:
    def __init__(self) -> None:
        self._running: AsyncIOScheduler | None = None

    async def install(self) -> None:
        with _paused():
            pass

    async def add(self, first: int, due_at: Sequence[float]) -> None:
        """Write jobs as `add_job` would, but many in a transaction: one by one they take a minute."""
        with _paused() as scheduler:
            store = scheduler._lookup_jobstore("default")  # noqa: SLF001 - there is no other way to it
            for start in range(0, len(due_at), BATCH):
                rows = [_row(scheduler, first + start + n, due) for n, due in enumerate(due_at[start : start + BATCH])]
                with store.engine.begin() as connection:
                    connection.execute(store.jobs_t.insert(), rows)
        if self._running is not None:
            self._running.wakeup()  # as its own `add_job` does

    @asynccontextmanager
    async def working(self, handle: Handle) -> AsyncIterator[None]:
        handles.append(handle)
        self._running = _a_scheduler()
        self._running.start()
        try:
            yield
        finally:
            self._running.shutdown(wait=False)
            self._running = None


@contextmanager
def _paused() -> Iterator[AsyncIOScheduler]:
    scheduler = _a_scheduler()
    scheduler.start(paused=True)
    try:
        yield scheduler
    finally:
        scheduler.shutdown(wait=False)


def _a_scheduler() -> AsyncIOScheduler:
    url = arguments()["database_url"].replace("postgresql://", "postgresql+psycopg2://")
    return AsyncIOScheduler(jobstores={"default": SQLAlchemyJobStore(url=url)}, timezone=UTC)


def _row(scheduler: AsyncIOScheduler, number: int, due: float) -> dict[str, object]:
    due_at = datetime.fromtimestamp(due, UTC)
    job = Job(
        scheduler,
        id=f"job-{number}",
        func=ring,
        args=(number,),
        kwargs={},
        name="ring",
        trigger=DateTrigger(due_at),
        executor="default",
        misfire_grace_time=None,
        coalesce=True,
        max_instances=1,
        next_run_time=due_at,
    )
    return {"id": job.id, "next_run_time": due, "job_state": pickle.dumps(job.__getstate__(), pickle.HIGHEST_PROTOCOL)}


if __name__ == "__main__":
    course.run(Apscheduler())
