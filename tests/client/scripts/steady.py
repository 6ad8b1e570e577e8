"""Schedules one job after the other, waiting for each verdict, until it has so many; a line for each."""

import asyncio
import os
import sys

from duebell import Scheduler


async def main() -> None:
    async with Scheduler(os.environ["AMQP_URL"], os.environ["AMQP_PREFIX"], timeout=60) as duebell:
        for number in range(int(sys.argv[1])):
            reply = await duebell.schedule(f"steady-{number}", at="2030-01-01T00:00:00Z", wait=number % 2 == 0)
            print(f"{number} {reply.outcome if reply else 'sent'}")
            await asyncio.sleep(0.02)
    print("finished")


asyncio.run(main())
