"""The ceiling of ingest: aiormq alone, consuming and acknowledging, with the consumer's own prefetch and one `multiple`
ack for each batch. Nothing is read, nothing is stored.
"""

import asyncio

import aiormq
from aiormq.abc import DeliveredMessage

from bench.child import arguments, timed

PREFETCH = 500


async def main() -> None:
    given = arguments()
    connection = await aiormq.connect(given["amqp_url"])
    channel = await connection.channel()
    await channel.basic_qos(prefetch_count=PREFETCH)
    finished, taken = asyncio.Event(), 0

    async def take(message: DeliveredMessage) -> None:
        nonlocal taken
        taken += 1
        if taken % (PREFETCH // 2) == 0 or taken == given["count"]:
            await channel.basic_ack(message.delivery_tag or 0, multiple=True)
        if taken == given["count"]:
            finished.set()

    async def consume() -> None:
        await channel.basic_consume(given["queue"], take)
        await finished.wait()

    await timed(given["count"], consume)
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
