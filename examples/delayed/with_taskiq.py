"""A task in one second, with taskiq. AMQP_URL names the broker; AMQP_PREFIX, if Duebell has one there.

taskiq-aio-pika knows the delayed-message plugin: it publishes tasks with the label `delay` to another exchange, with
the header `x-delay`. Here that exchange is the delay exchange. The queue is declared outside of taskiq, because taskiq
would bind it to the delay exchange, too: each task would then come at once, and again when it is due.
"""

import asyncio
import os
import time

import aio_pika
from taskiq.api import run_receiver_task
from taskiq_aio_pika import AioPikaBroker, Exchange, Queue

EXCHANGE = "my-app.later.taskiq"  # an operator has run: duebell delay open my-app.later.taskiq
DELAY_EXCHANGE = f"{os.environ.get('AMQP_PREFIX', '')}delay.{EXCHANGE}"

broker = AioPikaBroker(
    os.environ["AMQP_URL"],
    exchange=Exchange(name=EXCHANGE, declare=False),
    task_queues=[Queue(name=EXCHANGE, declare=False)],
    dead_letter_queue=Queue(name=f"{EXCHANGE}.dead"),
    delayed_message_exchange_plugin=True,
    delayed_message_exchange=Exchange(name=DELAY_EXCHANGE, declare=False),
)
done = asyncio.Event()


@broker.task
async def remind(text: str, began: float) -> None:
    print(f"received: {text}, after {time.monotonic() - began:.3f} s")
    done.set()


async def declare() -> None:
    async with await aio_pika.connect(os.environ["AMQP_URL"]) as connection, connection.channel() as channel:
        exchange = await channel.declare_exchange(EXCHANGE, aio_pika.ExchangeType.DIRECT, durable=True)
        queue = await channel.declare_queue(
            EXCHANGE, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 100_000}
        )
        await queue.bind(exchange, EXCHANGE)


async def main() -> None:
    await declare()
    broker.is_worker_process = True  # one process publishes and works here; `taskiq worker` sets it otherwise
    await broker.startup()
    worker = asyncio.create_task(run_receiver_task(broker))
    await remind.kicker().with_labels(delay=1).kiq("pay the invoice", time.monotonic())
    await asyncio.wait_for(done.wait(), 30)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    await broker.shutdown()


asyncio.run(main())
