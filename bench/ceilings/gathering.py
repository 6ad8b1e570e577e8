"""A producer as one would write it first: claims due rows, awaits aio-pika's publish for each in a gather, then updates
the rows. No recurrence, no returns, no timeouts, no metrics.
"""

import asyncio
from datetime import timedelta

import aio_pika
import asyncpg

from bench.child import arguments, timed
from bench.rig import NAMES
from producer.decisions.due_event import due_event
from producer.decisions.plan import DueJob
from producer.store.lanes import CLAIM_DUE_NOW
from shared.contract.messages import Misfire
from shared.contract.names import due_routing_key
from shared.recurrence import Occurrence

BATCH = 500
FINISH = """
update jobs set status = 'done', next_run_at = null, sequence = 1, last_due_at = next_run_at, finished_at = now(),
       version = version + 1
 where id = any($1::text[])
"""


async def produce(database: "asyncpg.Connection[asyncpg.Record]", exchange: aio_pika.abc.AbstractExchange) -> None:
    while True:
        async with database.transaction():
            rows = await database.fetch(CLAIM_DUE_NOW, None, BATCH)
            if not rows:
                return
            await asyncio.gather(*(publish(exchange, row) for row in rows))
            await database.execute(FINISH, [row["id"] for row in rows])


async def publish(exchange: aio_pika.abc.AbstractExchange, row: asyncpg.Record) -> None:
    job = DueJob(
        id=row["id"],
        version=row["version"],
        topic=row["topic"],
        payload=row["payload"],
        webhook=None,
        rule=None,
        occurrence=Occurrence(row["next_run_at"], 1),
        misfire=Misfire.ALL,
        misfire_grace=timedelta(minutes=1),
        sequence=0,
        refusals=0,
    )
    event = due_event(job, job.occurrence, 1, row["now"], NAMES)
    message = aio_pika.Message(
        event.body,
        content_type=event.content_type,
        type=event.type,
        timestamp=event.timestamp,
        headers=event.headers,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
    )
    await exchange.publish(message, routing_key=due_routing_key(row["topic"], has_webhook=False))


async def main() -> None:
    given = arguments()
    database = await asyncpg.connect(given["database_url"])
    async with await aio_pika.connect(given["amqp_url"]) as connection, connection.channel() as channel:
        exchange = await channel.get_exchange(NAMES.events)
        await timed(given["count"], lambda: produce(database, exchange))
    await database.close()


if __name__ == "__main__":
    asyncio.run(main())
