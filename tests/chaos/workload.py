"""What the application wants while the faults strike: jobs of every kind, one after the other, by a seed. Each is a
small life of its own: asked for, perhaps asked for again, put off or cancelled while it may be ringing.
"""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import timedelta

from shared.contract.fields import format_instant
from tests.chaos.application import Application
from tests.chaos.ledger import Plan, now

MOST_AT_ONCE = 500
WEBHOOK = {"timeout_seconds": 1, "max_retries": 20}


@dataclass(slots=True)
class Workload:
    app: Application
    webhook_url: str
    seed: int
    every: float = 0.06  # seconds between two jobs
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def end(self) -> None:
        """No new jobs; those that ring for ever are cancelled."""
        self._over.set()

    async def run(self) -> None:
        """Until all commands of all jobs are confirmed."""
        lives = (self._ring_once, self._ring_a_few_times, self._ask_twice, self._cancel, self._put_off, self._ring_on)
        room = asyncio.Semaphore(MOST_AT_ONCE)
        number = 0
        async with asyncio.TaskGroup() as tasks:
            while not self._over.is_set():
                number += 1
                [life] = self._chance.choices(lives, (35, 15, 10, 15, 15, 10))
                await room.acquire()
                task = tasks.create_task(life(f"{life.__name__.strip('_').replace('_', '-')}-{number}"))
                task.add_done_callback(lambda _: room.release())
                await self._sleep(self.every)

    async def _ring_once(self, job: str) -> None:
        plan = self._soon(0.0, 4.0)
        await self.app.request(job, plan, self._at(plan))

    async def _ring_a_few_times(self, job: str) -> None:
        """By an RRULE, which counts whole seconds."""
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

    async def _put_off(self, job: str) -> None:
        plan = self._soon(1.0, 4.0)
        content = self._at(plan)
        pause, longer = self._chance.uniform(0.0, 4.0), self._chance.uniform(1.0, 3.0)
        await self.app.request(job, plan, content)
        await self._sleep(pause)
        later = Plan(plan.first + timedelta(seconds=longer))
        await self.app.request(job, later, {**content, "at": format_instant(later.first)}, revision=2)

    async def _ring_on(self, job: str) -> None:
        """For ever, until it is cancelled."""
        start, seconds = self._soon(0.0, 2.0).first, self._chance.randint(1, 2)
        content = {"every_seconds": seconds, "start_at": format_instant(start), **self._details()}
        pause = self._chance.uniform(3.0, 8.0)
        await self.app.request(job, Plan(start, timedelta(seconds=seconds), None), content)
        await self._sleep(pause)
        await self.app.cancel(job)

    async def _sleep(self, seconds: float) -> None:
        """Shorter if the end comes."""
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return

    def _soon(self, least: float, most: float) -> Plan:
        return Plan(now() + timedelta(seconds=self._chance.uniform(least, most)))

    def _at(self, plan: Plan) -> dict[str, object]:
        return {"at": format_instant(plan.first), **self._details()}

    def _details(self) -> dict[str, object]:
        """Half of the jobs have a webhook."""
        details: dict[str, object] = {"topic": "chaos", "payload": {"number": self._chance.randint(1, 1000)}}
        if self._chance.random() < 0.5:
            details["webhook"] = {"url": self.webhook_url, **WEBHOOK}
        return details
