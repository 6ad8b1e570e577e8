"""A message in one second, with FastStream. AMQP_URL names the broker; AMQP_PREFIX, if Duebell has one there."""

import asyncio
import os
import time

from faststream import FastStream
from faststream.rabbit import ExchangeType, QueueType, RabbitBroker, RabbitExchange, RabbitMessage, RabbitQueue

NAME = "my-app.later.faststream"  # an operator has run: duebell delay open my-app.later.faststream
# FastStream declares what it publishes to, unless it is told not to.
DELAYED = RabbitExchange(f"{os.environ.get('AMQP_PREFIX', '')}delay.{NAME}", ExchangeType.TOPIC, declare=False)

broker = RabbitBroker(os.environ["AMQP_URL"])
app = FastStream(broker)


@broker.subscriber(
    RabbitQueue(NAME, queue_type=QueueType.QUORUM, durable=True, routing_key="reminders.#"),
    RabbitExchange(NAME, ExchangeType.TOPIC, durable=True),
)
async def receive(text: str, message: RabbitMessage) -> None:
    after = time.monotonic() - float(str(message.headers["began"]))
    print(f"received: {text}, after {after:.3f} s, x-delay {message.headers['x-delay']}")
    app.exit()


@app.after_startup
async def send() -> None:
    await broker.publish(
        "pay the invoice",
        exchange=DELAYED,
        routing_key="reminders.invoice",
        headers={"x-delay": 1000, "began": str(time.monotonic())},
        message_id="invoice-42",
        persist=True,
        timeout=30,
    )


asyncio.run(app.run())
