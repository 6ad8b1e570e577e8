"""The relay: carries the outbox to Duebell, at least once, in order per user. Any number may run.

A row is deleted in the transaction that claimed it, after the broker has confirmed its message. If the relay dies in
between, the row is still there and goes out again; Duebell knows the revision, and answers `duplicate`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aio_pika
import structlog
from aio_pika.abc import AbstractExchange

from examples.birthdays.broker import a_channel, declare_replies
from examples.birthdays.commands import CANCEL_KEY, REQUEST_KEY
from examples.birthdays.database import transaction
from examples.birthdays.outbox import Waiting, claim_heads, remove_from_outbox
from examples.birthdays.running import Stop, sleep
from examples.birthdays.settings import Settings

if TYPE_CHECKING:
    from examples.birthdays.database import Pool

BATCH = 200
LOOK_EVERY_SECONDS = 0.2
PUBLISH_SECONDS = 10.0
TYPES = {REQUEST_KEY: "ScheduleRequest", CANCEL_KEY: "ScheduleCancel"}


@dataclass(frozen=True, slots=True)
class ReturnAddress:
    """The AMQP user who publishes, and the queue for the verdicts."""

    user: str | None
    queue: str


class NotConfirmed(ConnectionError):
    """The broker did not take everything. What it took is gone from the outbox; the channel must not be used again."""


async def relay(pool: "Pool", settings: Settings, stop: Stop) -> None:
    async with a_channel(settings.amqp_url, "birthdays relay") as channel:
        await declare_replies(channel, settings.replies_queue)
        commands = await channel.get_exchange(settings.commands_exchange)
        return_address = ReturnAddress(settings.amqp_user, settings.replies_queue)
        while not stop.is_set():
            if not await relay_once(pool, commands, return_address):
                await sleep(stop, LOOK_EVERY_SECONDS)


async def relay_once(pool: "Pool", commands: AbstractExchange, return_address: ReturnAddress) -> int:
    """Publish the messages at the head of the outbox. Return how many were sent. The rows stay locked while the broker
    confirms, for PUBLISH_SECONDS at most.
    """
    async with transaction(pool) as connection:
        waiting = await claim_heads(connection, BATCH)
        confirmed = await _publish(commands, waiting, return_address) if waiting else []
        await remove_from_outbox(connection, [message.id for message in confirmed])
    for message in confirmed:
        structlog.get_logger().info("published", what=TYPES[message.routing_key], correlation_id=message.correlation_id)
    if len(confirmed) < len(waiting):
        raise NotConfirmed(f"{len(waiting) - len(confirmed)} of {len(waiting)} messages were not confirmed")
    return len(confirmed)


async def _publish(
    commands: AbstractExchange, waiting: Sequence[Waiting], return_address: ReturnAddress
) -> list[Waiting]:
    """Publish messages at the same time, because no two are of one user. Return those that were confirmed. The fate of
    the others is unknown, whether an error or the deadline ended them: they are tried again.
    """
    publishing = {
        asyncio.create_task(commands.publish(_message(one, return_address), one.routing_key, mandatory=True)): one
        for one in waiting
    }
    done, late = await asyncio.wait(publishing, timeout=PUBLISH_SECONDS)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    return [publishing[task] for task in done if not task.cancelled() and task.exception() is None]


def _message(waiting: Waiting, return_address: ReturnAddress) -> aio_pika.Message:
    return aio_pika.Message(
        waiting.body,
        content_type="application/json",
        type=TYPES[waiting.routing_key],
        # Returned messages are matched by this: it must be there, and no two in flight may share it.
        message_id=f"birthdays-{waiting.id}",
        correlation_id=waiting.correlation_id,
        reply_to=return_address.queue,
        # The broker checks user_id: no other user can change or cancel this schedule.
        user_id=return_address.user,
        app_id="birthdays",  # the history of a job says who sent a command
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
    )
