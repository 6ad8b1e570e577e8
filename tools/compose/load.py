"""Two hundred jobs with webhooks, due one after the other, for the step that restarts the stores."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import aio_pika
import asyncpg

from shared.contract.fields import format_instant
from shared.contract.messages import REQUEST_TYPE
from shared.contract.names import REQUEST_KEY, Names

JOBS = 200
FIRST_AFTER = timedelta(seconds=3)
APART = timedelta(milliseconds=100)
RING_SECONDS = 180.0
COUNT = """
select (select count(*) from jobs where id like 'load-%' and status = 'done') as rung,
       (select count(*) from deliveries where job_id like 'load-%' and status = 'COMPLETED') as called
"""


async def publish_jobs(amqp_url: str, webhook: str) -> None:
    """Publish the requests. Afterwards the broker has confirmed all of them."""
    async with await aio_pika.connect(amqp_url, timeout=10) as connection, connection.channel() as channel:
        commands = await channel.get_exchange(Names().commands)
        first = datetime.now(UTC) + FIRST_AFTER
        for number in range(JOBS):
            request = {
                "id": f"load-{number}",
                "at": format_instant(first + number * APART),
                "topic": "load",
                "webhook": {"url": webhook},
            }
            message = aio_pika.Message(
                json.dumps(request).encode(),
                content_type="application/json",
                type=REQUEST_TYPE,
                delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            )
            await commands.publish(message, REQUEST_KEY, timeout=10)


async def wait_for_jobs(database_url: str) -> tuple[int, int]:
    """Wait until all jobs have rung and all webhooks were called. Returns how many of each when it ends."""
    deadline = asyncio.get_running_loop().time() + RING_SECONDS
    while True:
        connection = await asyncpg.connect(database_url, timeout=10, command_timeout=10)
        try:
            [(rung, called)] = await connection.fetch(COUNT)
        finally:
            await connection.close(timeout=5)
        if (rung, called) == (JOBS, JOBS) or asyncio.get_running_loop().time() > deadline:
            return rung, called
        await asyncio.sleep(0.5)
