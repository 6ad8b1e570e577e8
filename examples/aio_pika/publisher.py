"""Asks Duebell to ring, with nothing but aio-pika, and waits for its verdict: publisher.py <id> [seconds] [payload]

AMQP_URL is the broker, AMQP_PREFIX the prefix of Duebell's names if it has one there. What counts: `on_return_raises`,
without which an unroutable publish looks successful; a `message_id` that is fresh for every try; and a deadline, after
which the fate of a command is unknown. Send it again then: Duebell knows it by its id and revision.
"""

import asyncio
import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

PREFIX = os.environ.get("AMQP_PREFIX", "")
DEADLINE = 30.0


async def ask(channel: AbstractChannel, routing_key: str, command: dict[str, Any]) -> dict[str, Any]:
    replies = await channel.declare_queue(exclusive=True)
    reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    correlation_id = uuid4().hex

    async def take(message: AbstractIncomingMessage) -> None:
        if message.correlation_id == correlation_id and not reply.done():
            reply.set_result(json.loads(message.body))

    await replies.consume(take, no_ack=True)
    commands = await channel.get_exchange(f"{PREFIX}schedule.commands", ensure=False)
    await commands.publish(
        aio_pika.Message(
            json.dumps(command).encode(),
            message_id=uuid4().hex,
            app_id="example.aio_pika",  # the history of a job says who sent a command
            content_type="application/json",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            timestamp=datetime.now(UTC),
            correlation_id=correlation_id,
            reply_to=replies.name,
        ),
        routing_key,
    )  # returns when the broker has confirmed it, raises if no queue took it
    return await reply


async def main(job_id: str, seconds: str = "2", payload: str = "null") -> int:
    command = {
        "id": job_id,
        # The highest revision wins: the same id again replaces the schedule, or uses an id again that has ended. A
        # command that is sent again keeps its revision, and is a duplicate.
        "revision": time.time_ns() // 1000,
        "at": (datetime.now(UTC) + timedelta(seconds=float(seconds))).isoformat(),
        "topic": "reminders.python",
        "payload": json.loads(payload),
    }
    async with asyncio.timeout(DEADLINE):
        connection = await aio_pika.connect(os.environ["AMQP_URL"])
        async with connection, connection.channel(on_return_raises=True) as channel:
            verdict = await ask(channel, "schedule.request", command)
    print(verdict["outcome"], verdict["id"], verdict["next_run_at"] or "", "; ".join(verdict["errors"]))
    # A duplicate is well if it is the same request again. If not, `errors` say what is otherwise: it will not ring.
    return int(verdict["outcome"] == "rejected" or bool(verdict["errors"]))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
