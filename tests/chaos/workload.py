"""The commands that the application sends while faults strike: jobs of every kind, one after the other, by a seed. A
job may be requested twice, rescheduled, or cancelled while it may be firing.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field
from datetime import timedelta

from shared.contract.fields import format_instant
from tests.chaos.application import Application
from tests.chaos.ledger import Plan, now

WEBHOOK = {"timeout_seconds": 1, "max_retries": 20}


@dataclass(frozen=True, slots=True)
class Mixture:
    """How often each kind of job is wanted, and which part of the jobs has a webhook."""

    kinds: tuple[int, ...] = (35, 15, 10, 15, 15, 10)  # in the order of `Workload.run()`
    webhooks: float = 0.5
    delayed: float = 0.3  # how many delayed messages are sent for each job


@dataclass(slots=True)
class Workload:
    app: Application
    webhook_url: str
    seed: int
    every: float = 0.06  # seconds between two jobs
    mixture: Mixture = field(default_factory=Mixture)
    max_jobs_at_once: int = 500
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def end(self) -> None:
        """Start no new jobs, and cancel the endless ones."""
        self._over.set()

    async def run(self) -> None:
        """Send commands until `end()`. Returns when all of them are confirmed."""
        kinds = (
            self._ring_once,
            self._ring_a_few_times,
            self._ask_twice,
            self._cancel,
            self._reschedule,
            self._ring_without_end,
        )
        room = asyncio.Semaphore(self.max_jobs_at_once)
        number, next_at = 0, time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            while not self._over.is_set():
                number += 1
                [act] = self._chance.choices(kinds, self.mixture.kinds)
                await room.acquire()
                task = tasks.create_task(act(f"{act.__name__.strip('_').replace('_', '-')}-{number}"))
                task.add_done_callback(lambda _: room.release())
                if self._chance.random() < self.mixture.delayed:
                    await room.acquire()
                    task = tasks.create_task(self.app.delay(f"delayed-{number}", self._soon(0.0, 4.0).first))
                    task.add_done_callback(lambda _: room.release())
                # After a time without room, the rate is as before: it does not catch up.
                next_at = max(next_at + self.every, time.monotonic() - self.every)
                await self._sleep(next_at - time.monotonic())

    async def _ring_once(self, job: str) -> None:
        plan = self._soon(0.0, 4.0)
        await self.app.request(job, plan, self._at(plan))

    async def _ring_a_few_times(self, job: str) -> None:
        """Request a job with an RRULE, which has whole seconds."""
        first = (now() + timedelta(seconds=self._chance.uniform(1, 3))).replace(microsecond=0)
        seconds, count = self._chance.randint(1, 2), self._chance.randint(2, 5)
        rule = f"FREQ=SECONDLY;INTERVAL={seconds};COUNT={count}"
        content = {"rrule": rule, "start_at": format_instant(first), **self._details()}
        await self.app.request(job, Plan(first, timedelta(seconds=seconds), count), content)

    async def _ask_twice(self, job: str) -> None:
        plan = self._soon(1.0, 4.0)
        content = self._at(plan)
        await self.app.request(job, plan, content)
        await self.app.request(job, plan, content)

    async def _cancel(self, job: str) -> None:
        plan = self._soon(1.0, 4.0)
        pause = self._chance.uniform(0.0, 4.0)
        await self.app.request(job, plan, self._at(plan))
        await self._sleep(pause)
        await self.app.cancel(job)

    async def _reschedule(self, job: str) -> None:
        plan = self._soon(1.0, 4.0)
        content = self._at(plan)
        pause, longer = self._chance.uniform(0.0, 4.0), self._chance.uniform(1.0, 3.0)
        await self.app.request(job, plan, content)
        await self._sleep(pause)
        later = Plan(plan.first + timedelta(seconds=longer))
        await self.app.request(job, later, {**content, "at": format_instant(later.first)}, revision=2)

    async def _ring_without_end(self, job: str) -> None:
        """Request an endless job, and cancel it later."""
        start, seconds = self._soon(0.0, 2.0).first, self._chance.randint(1, 2)
        content = {"every_seconds": seconds, "start_at": format_instant(start), **self._details()}
        pause = self._chance.uniform(3.0, 8.0)
        await self.app.request(job, Plan(start, timedelta(seconds=seconds), None), content)
        await self._sleep(pause)
        await self.app.cancel(job)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until `end()`."""
        if seconds <= 0:
            return
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return

    def _soon(self, least: float, most: float) -> Plan:
        return Plan(now() + timedelta(seconds=self._chance.uniform(least, most)))

    def _at(self, plan: Plan) -> dict[str, object]:
        return {"at": format_instant(plan.first), **self._details()}

    def _details(self) -> dict[str, object]:
        """Topic and payload, and for half of the jobs a webhook."""
        details: dict[str, object] = {"topic": "chaos", "payload": {"number": self._chance.randint(1, 1000)}}
        if self._chance.random() < self.mixture.webhooks:
            details["webhook"] = {"url": self.webhook_url, **WEBHOOK}
        return details
