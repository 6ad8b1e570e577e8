"""Puts messages into queues, fast: what waits there before a measurement begins."""

import asyncio
from collections.abc import Sequence

from bench.ceilings.wire import Wire, encoded
from shared.amqp.message import OutgoingMessage

BATCH = 1000


async def publish_all(amqp_url: str, messages: Sequence[OutgoingMessage]) -> None:
    await asyncio.to_thread(_publish_all, amqp_url, messages)


def _publish_all(amqp_url: str, messages: Sequence[OutgoingMessage]) -> None:
    wire = Wire(amqp_url)
    for start in range(0, len(messages), BATCH):
        batch = messages[start : start + BATCH]
        wire.publish(encoded(batch), len(batch))
        wire.wait_until_at_most(2 * BATCH)
    wire.wait_until_at_most(0)
    wire.close()
