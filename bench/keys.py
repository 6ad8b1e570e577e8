"""Whether something was published twice: every message of a queue, by its idempotency key."""

import asyncio
from collections import Counter

import aiormq
from aiormq.abc import DeliveredMessage

from bench.rig import Rig
from bench.waiting import depth
from shared.contract.names import IDEMPOTENCY_HEADER

PATIENCE = 120.0


async def count_copies(rig: Rig, queue: str) -> int:
    """Count the messages beyond the first of their key."""
    async with rig.channel() as channel:
        expected = await depth(channel, queue)
    keys: Counter[str] = Counter()
    all_read = asyncio.Event()

    async def read(message: DeliveredMessage) -> None:
        keys[str((message.header.properties.headers or {})[IDEMPOTENCY_HEADER])] += 1
        if keys.total() == expected:
            all_read.set()

    connection = await aiormq.connect(rig.context.amqp_url)
    try:
        reading = await connection.channel()
        await reading.basic_consume(queue, read, no_ack=True)
        async with asyncio.timeout(PATIENCE):
            await all_read.wait()
    finally:
        await connection.close()
    return keys.total() - len(keys)
