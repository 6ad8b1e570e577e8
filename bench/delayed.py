"""How fast delayed messages are stored, and published when they are due: beside requests and ScheduleDue of the same
size, taken in turns on the same stores. Beside them what is used without Duebell: a quorum queue with a TTL, which
passes expired messages on by dead-lettering.
"""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

import orjson
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel

from bench.figures import Beside, Cost, Figure, Goal, middle
from bench.ingest import until_stored
from bench.loading import publish_all
from bench.plan import Plan
from bench.rig import NAMES, QUEUE, Rig
from bench.waiting import depth, until, until_fired, until_messages
from shared.amqp.message import OutgoingMessage
from shared.amqp.topology import declare_delay_exchange
from shared.contract.messages import REQUEST_TYPE
from shared.contract.names import REQUEST_KEY
from shared.postgres import wake_producers
from shared.postgres.pool import Connection

# The producer's user may write to applications' exchanges of this name.
TARGET = "my-app.bench"
TTL_QUEUE = "my-app.bench.ttl"
WARM_UP = 3000
# As slow as 1 / 1.3.
NOT_SLOWER = Goal(at_least=0.77)

# flags, content_type and headers {"x-delay": -5000}, delivery_mode 2.
HEADER = (
    bytes.fromhex("b000")
    + b"\x10application/json"
    + bytes.fromhex("0000000d07")
    + b"x-delayI"
    + (-5000).to_bytes(4, "big", signed=True)
    + b"\x02"
)

DUE_MESSAGES = """
insert into delayed_messages (exchange, routing_key, header, body, due_at, message_id)
select $1, 'k', $2, convert_to($3, 'UTF8'), now() - (n % 1000) * interval '5 milliseconds', 'm-' || n
  from generate_series(1, $4::int) as n
"""
DUE_JOBS = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at)
select $1 || n, 'pending', 1, 'bench', $2::text::json, 'all', 60, now() - (n % 1000) * interval '5 milliseconds'
  from generate_series(1, $3::int) as n
"""
SOME_DELAYED = "select exists(select from delayed_messages)"
COUNT_DELAYED = "select count(*) from delayed_messages"


@dataclass(frozen=True, slots=True)
class Size:
    """A size of bodies, and how many of them are measured."""

    name: str
    payload: str  # JSON text of this size
    count: int


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    for size in (
        Size("100 B", orjson.dumps("x" * 98).decode(), plan.few),
        Size("10 kB", orjson.dumps("x" * 9998).decode(), max(plan.few // 4, 100)),
    ):
        rounds = [(await _publish(rig, size), await _fire(rig, size)) for _ in range(plan.rounds)]
        yield _figure(f"{size.count:,} messages of {size.name} published", "ScheduleDue of the size", rounds)
        rounds = [(await _store(rig, size), await _request(rig, size)) for _ in range(plan.rounds)]
        yield _figure(f"{size.count:,} messages of {size.name} stored", "requests of the size", rounds)
        passed_on = median([await _expire(rig, size) for _ in range(plan.rounds)])
        note = "dead-lettering, at least once; no cancel, and behind the head of the queue"
        yield Figure(f"{size.count:,} messages of {size.name}: a TTL queue", passed_on, "messages/s", note=note)


def _figure(what: str, beside: str, rounds: list[tuple[tuple[float, Cost], float]]) -> Figure:
    rate, cost = median(rate for (rate, _), _ in rounds), middle([cost for (_, cost), _ in rounds])
    return Figure(what, rate, "messages/s", Beside(beside, median(other for _, other in rounds)), NOT_SLOWER, cost)


async def _publish(rig: Rig, size: Size) -> tuple[float, Cost]:
    """Measure messages per second, from the moment the producer may begin to the moment everything is confirmed and
    gone.
    """
    await rig.empty()
    async with rig.database() as database, rig.channel() as channel:
        await _open(channel)
        with rig.service("producer") as producer:
            await _add_due(database, size.payload, WARM_UP)
            await _until_published(channel, database, WARM_UP)
            with producer.held_back():
                await _add_due(database, size.payload, size.count)
                await (await channel.get_queue(QUEUE)).purge()
            began = time.perf_counter()
            with producer.cost_of(size.count) as bill:
                ended = await _until_published(channel, database, size.count)
            return size.count / (ended - began), bill.cost


async def _fire(rig: Rig, size: Size) -> float:
    await rig.empty()
    async with rig.database() as database, rig.channel() as channel:
        with rig.service("producer") as producer:
            await _add_jobs(database, "warm-", size.payload, WARM_UP)
            await until_fired(channel, database, QUEUE, WARM_UP)
            with producer.held_back():
                await _add_jobs(database, "due-", size.payload, size.count)
                await (await channel.get_queue(QUEUE)).purge()
            began = time.perf_counter()
            ended = await until_fired(channel, database, QUEUE, size.count)
            return size.count / (ended - began)


async def _store(rig: Rig, size: Size) -> tuple[float, Cost]:
    await rig.empty()
    async with rig.channel() as channel:
        await _open(channel)
    with rig.service("consumer") as consumer:
        await publish_all(rig.context.amqp_url, _messages(size, WARM_UP))
        await _until_delayed(rig, WARM_UP)
        with consumer.held_back():
            await publish_all(rig.context.amqp_url, _messages(size, size.count))
        began = time.perf_counter()
        with consumer.cost_of(size.count) as bill:
            ended = await _until_delayed(rig, WARM_UP + size.count)
        return size.count / (ended - began), bill.cost


async def _request(rig: Rig, size: Size) -> float:
    await rig.empty()
    with rig.service("consumer") as consumer:
        await publish_all(rig.context.amqp_url, _requests(size, "warm-", WARM_UP))
        await until_stored(rig, WARM_UP, "warm-")
        with consumer.held_back():
            await publish_all(rig.context.amqp_url, _requests(size, "asked-", size.count))
        began = time.perf_counter()
        return size.count / (await until_stored(rig, size.count, "asked-") - began)


async def _expire(rig: Rig, size: Size) -> float:
    """Measure messages per second that a queue with a TTL passes on, all of which expire at the same time."""
    await rig.empty()
    async with rig.channel() as channel:
        await _open(channel)
        waits_ms = 3000 + size.count // 10
        await channel.queue_delete(TTL_QUEUE)
        await channel.declare_queue(
            TTL_QUEUE,
            durable=True,
            arguments={
                "x-queue-type": "quorum",
                "x-message-ttl": waits_ms,
                "x-dead-letter-exchange": TARGET,
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",
            },
        )
        message = OutgoingMessage("", TTL_QUEUE, size.payload.encode())
        began = time.perf_counter()
        await publish_all(rig.context.amqp_url, [message] * size.count)
        expired = max(time.perf_counter(), began + waits_ms / 1000)
        ended = await until_messages(channel, QUEUE, size.count)
        await channel.queue_delete(TTL_QUEUE)
        return size.count / max(ended - expired, 0.001)


async def _open(channel: AbstractChannel) -> None:
    exchange = await channel.declare_exchange(TARGET, ExchangeType.TOPIC, durable=True)
    await (await channel.get_queue(QUEUE)).bind(exchange, "#")
    await declare_delay_exchange(channel, NAMES, TARGET)


async def _add_due(database: Connection, payload: str, count: int) -> None:
    await database.execute(DUE_MESSAGES, TARGET, HEADER, payload, count)
    await _settle_down(database, "delayed_messages")


async def _add_jobs(database: Connection, name: str, payload: str, count: int) -> None:
    await database.execute(DUE_JOBS, name, payload, count)
    await _settle_down(database, "jobs")


async def _settle_down(database: Connection, table: str) -> None:
    await database.execute(f"vacuum (analyze) {table}")
    await database.execute("checkpoint")
    await database.execute("select pg_notify($1, '')", wake_producers.CHANNEL)


async def _until_published(channel: AbstractChannel, database: Connection, messages: int) -> float:
    async def none_left() -> bool:
        return not await database.fetchval(SOME_DELAYED)

    await until_messages(channel, QUEUE, messages)
    return await until(none_left, "no delayed message")


async def _until_delayed(rig: Rig, count: int) -> float:
    async with rig.database() as database, rig.channel() as channel:

        async def taken() -> bool:
            return await depth(channel, NAMES.delayed) == 0

        async def stored() -> bool:
            return bool(await database.fetchval(COUNT_DELAYED) == count)

        await until(taken, "an empty queue")
        return await until(stored, f"{count} rows")


def _messages(size: Size, count: int) -> list[OutgoingMessage]:
    body, headers = size.payload.encode(), {"x-delay": 3_600_000}
    return [OutgoingMessage(NAMES.delay_exchange(TARGET), "k", body, headers=headers) for _ in range(count)]


def _requests(size: Size, name: str, count: int) -> list[OutgoingMessage]:
    content = {"at": (datetime.now(UTC) + timedelta(days=1)).isoformat(), "payload": orjson.Fragment(size.payload)}
    return [
        OutgoingMessage(
            NAMES.commands, REQUEST_KEY, orjson.dumps({"id": f"{name}{number}", **content}), type=REQUEST_TYPE
        )
        for number in range(count)
    ]
