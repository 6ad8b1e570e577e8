"""Listens to what rings, with nothing but aio-pika, and acts once per occurrence: listener.py [queue] [topic]

AMQP_URL is the broker, AMQP_PREFIX the prefix of Duebell's names if it has one there. What counts: a durable queue of
your own, a bounded prefetch, the acknowledgement after the work, and the idempotency key. The robust connection starts
afresh after a loss, and what was not acknowledged comes again.
"""

import asyncio
import json
import os
import sys
from collections import OrderedDict
from typing import Any

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

PREFIX = os.environ.get("AMQP_PREFIX", "")
KEYS_KEPT = 100_000
PREFETCH = 20

# A real application keeps the keys where it keeps the effects, in the same transaction.
seen: "OrderedDict[str, None]" = OrderedDict()


async def handle(due: dict[str, Any]) -> None:
    print("rang", due["id"], json.dumps(due["payload"]), due["idempotency_key"], flush=True)
    if isinstance(due["payload"], dict) and due["payload"].get("fail"):
        raise RuntimeError("told to fail")


async def receive(message: AbstractIncomingMessage) -> None:
    due = json.loads(message.body)
    key = due["idempotency_key"]
    if key in seen:
        print("again", due["id"], "is skipped", flush=True)
        return await message.ack()
    try:
        await handle(due)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises, the event must end somewhere
        # Given back once, in case the error was temporary; then to the dead-letter queue, for a person to look at.
        print("failed", due["id"], error, flush=True)
        await asyncio.sleep(1)
        return await message.reject(requeue=not message.redelivered)
    seen[key] = None
    if len(seen) > KEYS_KEPT:
        seen.popitem(last=False)
    return await message.ack()


async def main(queue_name: str = "my-app.python", topic: str = "reminders.#") -> None:
    connection = await aio_pika.connect_robust(os.environ["AMQP_URL"], timeout=30)
    async with connection, connection.channel() as channel:
        await channel.set_qos(prefetch_count=PREFETCH)
        failed = f"{queue_name}.failed"
        exchange = await channel.declare_exchange(failed, aio_pika.ExchangeType.FANOUT, durable=True)
        # RabbitMQ 4 otherwise drops a message after 20 deliveries.
        limits = {"x-queue-type": "quorum", "x-delivery-limit": 100_000}
        parked = await channel.declare_queue(failed, durable=True, arguments=limits)
        await parked.bind(exchange)
        queue = await channel.declare_queue(
            queue_name,
            durable=True,
            # As the Python client declares its queues: the same name with other arguments is refused.
            arguments={
                **limits,
                "x-dead-letter-exchange": failed,
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",
            },
        )
        await queue.bind(f"{PREFIX}schedule.events", f"due.*.{topic}")
        await queue.consume(receive)
        print("listening on", queue_name, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
