"""Publishes on a connection that is left after half a second if the broker blocks it, and says what the client logs."""

import asyncio
import logging
import os
import sys
from contextlib import suppress

import aio_pika
from duebell.link import BROKER_TROUBLE, Link


async def main() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
    async with Link(os.environ["AMQP_URL"], "blocked", 30, max_blocked_seconds=0.5) as link:
        print("connected")
        while True:
            with suppress(*BROKER_TROUBLE):
                async with asyncio.timeout(1), link.channel() as channel:
                    # The broker tells a connection that it is blocked when it publishes.
                    await channel.default_exchange.publish(aio_pika.Message(b""), "no queue", mandatory=False)
            await asyncio.sleep(0.1)


asyncio.run(main())
