"""A message in one second, with aio-pika. AMQP_URL names the broker; AMQP_PREFIX, if Duebell has one there."""

import asyncio
import os
import time

import aio_pika

EXCHANGE = "my-app.later.aio-pika"  # an operator has run: duebell delay open my-app.later.aio-pika
DELAY_EXCHANGE = f"{os.environ.get('AMQP_PREFIX', '')}delay.{EXCHANGE}"


async def main() -> None:
    connection = await aio_pika.connect_robust(os.environ["AMQP_URL"])
    async with connection, connection.channel(on_return_raises=True) as channel:
        exchange = await channel.declare_exchange(EXCHANGE, aio_pika.ExchangeType.TOPIC, durable=True)
        queue = await channel.declare_queue(
            EXCHANGE, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 100_000}
        )
        await queue.bind(exchange, "reminders.#")

        began = time.monotonic()
        delayed = await channel.get_exchange(DELAY_EXCHANGE, ensure=False)
        message = aio_pika.Message(
            b"pay the invoice",
            headers={"x-delay": 1000},
            message_id="invoice-42",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        await delayed.publish(message, "reminders.invoice")  # returns when the broker has confirmed it

        async with queue.iterator(timeout=30) as messages:
            async for received in messages:
                async with received.process():
                    after = time.monotonic() - began
                    text, delay = received.body.decode(), str(received.headers["x-delay"])
                    print(f"received: {text}, after {after:.3f} s, x-delay {delay}")
                break


asyncio.run(main())
