"""A message in one second, with kombu. AMQP_URL names the broker; AMQP_PREFIX, if Duebell has one there."""

import os
import time
from typing import Any

from kombu import Connection, Consumer, Exchange, Producer, Queue

EXCHANGE = "my-app.later.kombu"  # an operator has run: duebell delay open my-app.later.kombu
DELAY_EXCHANGE = f"{os.environ.get('AMQP_PREFIX', '')}delay.{EXCHANGE}"

queue = Queue(
    EXCHANGE,
    Exchange(EXCHANGE, "topic"),
    routing_key="reminders.#",
    queue_arguments={"x-queue-type": "quorum", "x-delivery-limit": 100_000},
)
began = time.monotonic()


def receive(body: str, message: Any) -> None:  # noqa: ANN401 - kombu has no types
    after = time.monotonic() - began
    print(f"received: {body}, after {after:.3f} s, x-delay {message.headers['x-delay']}")
    message.ack()


with (
    Connection(os.environ["AMQP_URL"], transport_options={"confirm_publish": True}) as connection,
    Consumer(connection, queues=[queue], callbacks=[receive]),
):
    Producer(connection.default_channel).publish(
        "pay the invoice",
        exchange=DELAY_EXCHANGE,
        routing_key="reminders.invoice",
        headers={"x-delay": 1000},
        message_id="invoice-42",
        delivery_mode="persistent",
    )
    connection.drain_events(timeout=30)
