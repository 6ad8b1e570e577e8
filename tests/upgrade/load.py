"""An application that never stops scheduling while releases change: it sends jobs of every kind, one after the other,
and notes what must become of each.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from tests.support.application import Application, Event
from tests.support.builders import in_seconds
from tests.support.eventually import PATIENCE, eventually
from tests.support.receiver import Receiver

TOPIC = "upgrade"
WORKERS = 4
PAUSE_SECONDS = 0.05  # between two jobs of a worker
LATER = 3600.0
STEADY = "steady"


@dataclass(slots=True)
class Load:
    """Sends jobs until it is stopped. The id of a job begins with the name of the phase in which it was sent."""

    app: Application
    receiver: Receiver
    phase: str = "old"
    # When the old services were started beside the new ones.
    old_again_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    finished: dict[str, int] = field(default_factory=dict)  # jobs whose commands are answered, by phase
    once: set[str] = field(default_factory=set)  # jobs that are published once
    called: set[str] = field(default_factory=set)  # those of them that have a webhook
    cancelled: set[str] = field(default_factory=set)
    _numbers: "count[int]" = field(default_factory=count)
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    async def goes_on(self, jobs: int = 30) -> None:
        """Wait until that many further jobs of this phase are answered."""
        enough = self.finished.get(self.phase, 0) + jobs

        async def look() -> bool:
            finished = self.finished.get(self.phase, 0)
            assert finished >= enough, f"{finished} of {enough} jobs of the phase {self.phase}"
            return True

        await eventually(look)

    def of(self, phase: str) -> set[str]:
        """Return the ids of this phase's jobs that are published once."""
        return {job for job in self.once if job.startswith(f"{phase}-")}

    def events_of(self, job: str) -> list[Event]:
        return [event for event in self.app.heard if event.content["id"] == job]

    async def work(self) -> None:
        kinds = (self._publish, self._call, self._cancel, self._reschedule)
        while not self._over.is_set():
            number = next(self._numbers)
            phase, kind = self.phase, kinds[number % len(kinds)]
            await kind(f"{phase}-{kind.__name__.strip('_')}-{number}")
            self.finished[phase] = self.finished.get(phase, 0) + 1
            try:
                await asyncio.wait_for(self._over.wait(), PAUSE_SECONDS)
            except TimeoutError:
                continue

    def stop(self) -> None:
        self._over.set()

    async def _publish(self, job: str) -> None:
        await self._request(job, in_seconds(1.0))
        self.once.add(job)

    async def _call(self, job: str) -> None:
        await self._request(job, in_seconds(1.0), webhook={"url": self.receiver.url, "max_retries": 10})
        self.once.add(job)
        self.called.add(job)

    async def _cancel(self, job: str) -> None:
        await self._request(job, in_seconds(LATER))
        assert (await self.app.cancel(job))["outcome"] == "cancelled"
        self.cancelled.add(job)

    async def _reschedule(self, job: str) -> None:
        await self._request(job, in_seconds(LATER))
        await self._request(job, in_seconds(1.0), outcome="rescheduled", revision=2)
        self.once.add(job)

    async def _request(self, job: str, at: str, outcome: str = "accepted", **fields: Any) -> None:
        reply = await self.app.request({"id": job, "at": at, "topic": TOPIC, **fields})
        # A consumer that stops gives back what it has not acknowledged: another one may answer the same request again.
        assert reply["outcome"] in {outcome, "duplicate"}, reply


@asynccontextmanager
async def a_load(app: Application, receiver: Receiver) -> AsyncIterator[Load]:
    """Load until the block ends, and a rule that has an occurrence in each second."""
    load = Load(app, receiver)
    await app.request({"id": STEADY, "every_seconds": 1, "topic": TOPIC})
    async with asyncio.timeout(10 * PATIENCE), asyncio.TaskGroup() as workers:
        for _ in range(WORKERS):
            workers.create_task(load.work())
        try:
            yield load
        finally:
            load.stop()
