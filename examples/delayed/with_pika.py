"""A message in one second, with pika. AMQP_URL names the broker; AMQP_PREFIX, if Duebell has one there."""

import os
import sys
import time

import pika

EXCHANGE = "my-app.later.pika"  # an operator has run: duebell delay open my-app.later.pika
DELAY_EXCHANGE = f"{os.environ.get('AMQP_PREFIX', '')}delay.{EXCHANGE}"

connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
channel = connection.channel()
channel.confirm_delivery()  # basic_publish then raises what is returned or refused
channel.exchange_declare(EXCHANGE, "topic", durable=True)
channel.queue_declare(EXCHANGE, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 100_000})
channel.queue_bind(EXCHANGE, EXCHANGE, "reminders.#")

began = time.monotonic()
channel.basic_publish(
    DELAY_EXCHANGE,
    "reminders.invoice",
    b"pay the invoice",
    pika.BasicProperties(
        headers={"x-delay": 1000}, message_id="invoice-42", delivery_mode=pika.DeliveryMode.Persistent
    ),
    mandatory=True,  # tells whether the delay exchange is open
)
for method, properties, body in channel.consume(EXCHANGE, inactivity_timeout=30):
    if method is None:
        sys.exit("nothing came within 30 s")
    channel.basic_ack(method.delivery_tag)
    print(f"received: {body.decode()}, after {time.monotonic() - began:.3f} s, x-delay {properties.headers['x-delay']}")
    break
connection.close()
