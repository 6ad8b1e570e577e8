"""Sends the same request object twice: alone, and among many."""

import asyncio
import os

from duebell import Scheduler, request


async def main() -> None:
    async with Scheduler(os.environ["AMQP_URL"], os.environ["AMQP_PREFIX"]) as duebell:
        one = request("one", every_seconds=3600)
        print((await duebell.send(one)).outcome, (await duebell.send(one)).outcome)
        many = [request(f"many-{number}", at="2030-01-01T00:00:00Z") for number in range(3)]
        print(await duebell.schedule_many(many), await duebell.schedule_many(many))


asyncio.run(main())
