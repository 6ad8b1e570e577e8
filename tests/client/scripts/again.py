"""Sends the same command object twice: a request alone and among many, and a pause."""

import asyncio
import os

from duebell import Scheduler, request
from duebell.messages import SchedulePause


async def main() -> None:
    async with Scheduler(os.environ["AMQP_URL"], os.environ["AMQP_PREFIX"]) as duebell:
        one = request("one", every_seconds=3600)
        print((await duebell.send(one)).outcome, (await duebell.send(one)).outcome)
        pause = SchedulePause(id="one", revision=one.revision + 1)
        print((await duebell.send(pause)).outcome, (await duebell.send(pause)).outcome)
        many = [request(f"many-{number}", at="2030-01-01T00:00:00Z") for number in range(3)]
        print(await duebell.schedule_many(many), await duebell.schedule_many(many))


asyncio.run(main())
