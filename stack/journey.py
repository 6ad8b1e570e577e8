"""The journey that `make demo` shows: an application schedules three jobs, and the journal records replies and events
as RabbitMQ delivers them and states as Postgres has them.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aio_pika
import asyncpg
from aio_pika.abc import AbstractExchange, AbstractIncomingMessage

from shared.contract.fields import format_instant
from shared.contract.messages import CANCEL_TYPE, DUE_TYPE, REQUEST_TYPE
from shared.contract.names import CANCEL_KEY, REQUEST_KEY, Names

LOOK_SECONDS = 0.02
JOURNEY_TIMEOUT_SECONDS = 30.0

ONE_SHOT, RECURRING, CANCELLED = "tea", "pulse", "doorbell"
PULSES = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One event of the journey: when, to which job, and where it was seen."""

    seconds: float
    job: str
    where: str
    text: str


@dataclass(slots=True)
class Journal:
    """Everything that was seen, for the checks at the end. `note()` shows each step at once."""

    show: Callable[[Step], None]
    began: float = field(default_factory=time.monotonic)
    due_at: dict[str, datetime] = field(default_factory=dict)
    replies: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    states: dict[str, list[str]] = field(default_factory=dict)
    completed: list[dict[str, Any]] = field(default_factory=list)
    received: list[str] = field(default_factory=list)  # lines of the receiver

    def note(self, job: str, where: str, text: str) -> None:
        self.show(Step(time.monotonic() - self.began, job, where, text))


class Application:
    """Does what any application does: it publishes commands, reads replies, and listens to events."""

    def __init__(self, journal: Journal, commands: AbstractExchange, reply_queue: str) -> None:
        self._journal = journal
        self._commands = commands
        self._reply_queue = reply_queue

    async def request(self, text: str, **content: object) -> None:
        self._journal.note(str(content["id"]), "application", text)
        await self._send(REQUEST_TYPE, REQUEST_KEY, content)

    async def cancel(self, job: str, text: str) -> None:
        self._journal.note(job, "application", text)
        await self._send(CANCEL_TYPE, CANCEL_KEY, {"id": job})

    async def _send(self, kind: str, key: str, content: dict[str, object]) -> None:
        message = aio_pika.Message(
            json.dumps(content).encode(),
            content_type="application/json",
            type=kind,
            reply_to=self._reply_queue,
            correlation_id=str(content["id"]),
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        await self._commands.publish(message, key, timeout=10)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses that the journey uses."""

    database_url: str
    amqp_url: str
    webhook_url: str
    webhook_secret: str
    receiver_log: Path


async def run_journey(addresses: Addresses, journal: Journal) -> None:
    """Run the journey until all three jobs have ended. Raises TimeoutError if they do not end in time."""
    async with asyncio.timeout(JOURNEY_TIMEOUT_SECONDS), _application(addresses.amqp_url, journal) as app:
        watching = asyncio.create_task(_watch_states(addresses.database_url, journal))
        reading = asyncio.create_task(_read_receiver(addresses.receiver_log, journal))
        tea_at = datetime.now(UTC) + timedelta(seconds=1.5)
        pulse_at = (datetime.now(UTC) + timedelta(seconds=2)).replace(microsecond=0)
        journal.due_at |= {ONE_SHOT: tea_at, RECURRING: pulse_at}
        await app.request(
            "one-shot with a webhook: ring once, in a second and a half",
            id=ONE_SHOT, topic="demo.tea", at=format_instant(tea_at), payload={"cups": 2},
            webhook={"url": addresses.webhook_url, "secret": addresses.webhook_secret},
        )  # fmt: skip
        await app.request(
            f"recurring: ring every second, {PULSES} times",
            id=RECURRING, topic="demo.pulse", rrule=f"FREQ=SECONDLY;COUNT={PULSES}", start_at=format_instant(pulse_at),
        )  # fmt: skip
        await app.request(
            "one-shot: ring once, in two and a half seconds",
            id=CANCELLED, topic="demo.doorbell", at=format_instant(datetime.now(UTC) + timedelta(seconds=2.5)),
        )  # fmt: skip
        await asyncio.sleep(0.7)
        await app.cancel(CANCELLED, "cancel: the visitor has left")
        await watching
        await reading
        # The last state is committed after its event was confirmed; the event may still be on its way to this process.
        while sum(map(len, journal.events.values())) < 1 + PULSES or not journal.completed:  # noqa: ASYNC110 - looking is all there is to do
            await asyncio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def _application(amqp_url: str, journal: Journal) -> AsyncIterator[Application]:
    names = Names()

    async def on_reply(message: AbstractIncomingMessage) -> None:
        reply = json.loads(message.body)
        journal.replies.setdefault(reply["id"], []).append(reply)
        next_run = f", next run {_clock(reply['next_run_at'])}" if reply["next_run_at"] else ""
        journal.note(reply["id"], "consumer", f"{reply['outcome']}{next_run}")

    async def on_event(message: AbstractIncomingMessage) -> None:
        event, now = json.loads(message.body), datetime.now(UTC)
        if message.type != DUE_TYPE:
            journal.completed.append(event)
            journal.note(event["id"], "delivery", f"{event['status']} after {_times(event['attempts'])}")
            return
        journal.events.setdefault(event["id"], []).append(event)
        late = (now - datetime.fromisoformat(event["due_at"])).total_seconds() * 1000
        number = f", number {event['sequence']}" if event["id"] == RECURRING else ""
        journal.note(event["id"], "producer", f"rings{number}, {late:.0f} ms after {_clock(event['due_at'])}")

    async with await aio_pika.connect(amqp_url, timeout=10) as connection, connection.channel() as channel:
        events = await channel.declare_queue(exclusive=True)
        for key in ("due.*.demo.#", "delivery.*.demo.#"):
            await events.bind(await channel.get_exchange(names.events), key)
        await events.consume(on_event, no_ack=True)
        replies = await channel.declare_queue(exclusive=True)
        await replies.consume(on_reply, no_ack=True)
        yield Application(journal, await channel.get_exchange(names.commands), replies.name)


async def _watch_states(database_url: str, journal: Journal) -> None:
    """Note every change of a row, until all three jobs are in their last state."""
    connection = await asyncpg.connect(database_url, timeout=10, command_timeout=10)
    seen: dict[str, tuple[str, int]] = {}
    try:
        while [status for status, _ in seen.values() if status != "pending"] != ["done", "done", "cancelled"]:
            rows = await connection.fetch(
                "select id, status, version, next_run_at from jobs where id = any($1) order by array_position($1, id)",
                [ONE_SHOT, RECURRING, CANCELLED],
            )
            for row in rows:
                if seen.get(row["id"]) != (row["status"], row["version"]):
                    seen[row["id"]] = (row["status"], row["version"])
                    journal.states.setdefault(row["id"], []).append(row["status"])
                    until = f" until {_clock(format_instant(row['next_run_at']))}" if row["next_run_at"] else ""
                    journal.note(row["id"], "Postgres", f"{row['status']}{until}")
            seen = {job: seen[job] for job in (ONE_SHOT, RECURRING, CANCELLED) if job in seen}
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        await connection.close(timeout=5)


async def _read_receiver(log: Path, journal: Journal) -> None:
    """Note what the receiver of webhooks writes, until it has written about the call that is expected."""
    while not journal.received:
        written = await asyncio.to_thread(log.read_text)
        for line in written.splitlines()[1:]:  # the first says where it listens
            journal.received.append(line)
            _, what, key, text = line.split(maxsplit=3)
            journal.note(text.split()[0], "receiver", f"webhook, {what} call with {key[:14]}…, signature verified")
        await asyncio.sleep(LOOK_SECONDS)


def _times(attempts: int) -> str:
    return "one attempt" if attempts == 1 else f"{attempts} attempts"


def _clock(instant: str) -> str:
    """Return the time of day with milliseconds."""
    return datetime.fromisoformat(instant).strftime("%H:%M:%S.%f")[:-3]
