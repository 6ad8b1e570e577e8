"""Sends commands with a short deadline, one after the other, until one is not confirmed; then again until one is. No
consumer answers them.
"""

import asyncio
import os
import time

from duebell import Scheduler, Unconfirmed


async def main() -> None:
    async with Scheduler(os.environ["AMQP_URL"], os.environ["AMQP_PREFIX"], timeout=2) as duebell:
        print("connected")
        await the_first_that_is_not_confirmed(duebell)
        await duebell.schedule("last", at="2030-01-01T00:00:00Z", wait=False, timeout=60)
    print("sent again")


async def the_first_that_is_not_confirmed(duebell: Scheduler) -> None:
    while True:
        began = time.monotonic()
        try:
            await duebell.schedule("job", at="2030-01-01T00:00:00Z", wait=False)
        except Unconfirmed:
            print(f"Unconfirmed after {time.monotonic() - began:.1f} s")
            return
        await asyncio.sleep(0.05)


asyncio.run(main())
