"""Listens for Duebell's verdicts and counts what became of each change: rescheduled or skipped. A reply is acknowledged
after it was noted down; one that comes twice changes nothing.
"""

import asyncio
import json
from typing import TYPE_CHECKING

import structlog
from aio_pika.abc import AbstractIncomingMessage

from examples.birthdays.broker import SECONDS, a_channel, declare_replies
from examples.birthdays.commands import read_correlation_id
from examples.birthdays.database import transaction
from examples.birthdays.running import Stop
from examples.birthdays.settings import Settings
from examples.birthdays.verdicts import note_outcome

if TYPE_CHECKING:
    from examples.birthdays.database import Pool

PREFETCH = 50


async def listen_for_replies(pool: "Pool", settings: Settings, stop: Stop) -> None:
    async with a_channel(settings.amqp_url, "birthdays replies") as channel:
        await channel.set_qos(prefetch_count=PREFETCH, timeout=SECONDS)
        queue = await declare_replies(channel, settings.replies_queue)
        received: asyncio.Queue[AbstractIncomingMessage | None] = asyncio.Queue()  # bounded by the prefetch
        # A lost channel, or a deleted queue, ends the wait as well as a message does.
        channel.close_callbacks.add(lambda *_: received.put_nowait(None))
        (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(lambda *_: received.put_nowait(None))
        await queue.consume(received.put, timeout=SECONDS)
        stopping = asyncio.create_task(_end_when_stopped(stop, received))
        try:
            while message := await received.get():
                await note_reply(pool, message.body, message.correlation_id)
                await message.ack()
        finally:
            stopping.cancel()
        if not stop.is_set():
            raise ConnectionError("the queue of replies was lost")


async def _end_when_stopped(stop: Stop, received: "asyncio.Queue[AbstractIncomingMessage | None]") -> None:
    await stop.wait()
    received.put_nowait(None)


async def note_reply(pool: "Pool", body: bytes, correlation_id: str | None) -> None:
    log = structlog.get_logger()
    try:
        reply = json.loads(body)
        outcome, errors, next_run_at = str(reply["outcome"]), reply["errors"], reply["next_run_at"]
        event_id, revision = read_correlation_id(correlation_id or "")
    except (ValueError, KeyError, TypeError):
        log.warning("reply_unreadable", correlation_id=correlation_id)
        return
    async with transaction(pool) as connection:
        verdict = await note_outcome(connection, event_id, revision, outcome)
    if outcome == "rejected":
        log.error("refused", id=str(event_id), revision=revision, errors=errors)
    elif verdict is not None:
        log.info(verdict, id=str(event_id), revision=revision, outcome=outcome, next_run_at=next_run_at)
    else:
        log.info(outcome, id=str(event_id), revision=revision, next_run_at=next_run_at)
