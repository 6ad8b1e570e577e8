"""Sends commands as an application would: with confirms, mandatory, with a reply queue. The consumer's reply is the
verdict. A command that the consumer would refuse is not sent: its verdict is made here, by the consumer's own code.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import orjson
from aio_pika import DeliveryMode, Message
from aio_pika.exceptions import DeliveryError

from console.errors import NotSent
from consumer.commands.parse import Command as ReadCommand
from consumer.commands.parse import RawCommand, Refused, read_command
from shared.amqp.connection import BROKER_ERRORS, Broker
from shared.amqp.consuming import Inbox
from shared.amqp.wire import WireChannel, lost_connections_as_errors
from shared.contract.messages import (
    BULK_TYPE,
    CANCEL_TYPE,
    PAUSE_TYPE,
    REQUEST_TYPE,
    RESUME_TYPE,
    TRIGGER_TYPE,
    Outcome,
    ScheduleReply,
)
from shared.contract.names import (
    BULK_KEY,
    CANCEL_KEY,
    OPERATOR_HEADER,
    PAUSE_KEY,
    REQUEST_KEY,
    RESUME_KEY,
    TRIGGER_KEY,
    Names,
)
from shared.postgres.errors import describe
from shared.runtime.addresses import parse_address
from shared.runtime.loops import Stop

CONSOLE_APP_ID = "duebell-console"
KEYS = {
    REQUEST_TYPE: REQUEST_KEY,
    CANCEL_TYPE: CANCEL_KEY,
    PAUSE_TYPE: PAUSE_KEY,
    RESUME_TYPE: RESUME_KEY,
    TRIGGER_TYPE: TRIGGER_KEY,
    BULK_TYPE: BULK_KEY,
}


@dataclass(frozen=True, slots=True)
class Command:
    """`type` is the name of the message. With `owns`, the user of AMQP_URL speaks for a job that has an owner."""

    type: str
    content: Mapping[str, Any]
    owns: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a command. `outcome` is None if no answer came in time, or the connection was lost before it came:
    then the command may still be done.
    """

    id: str
    outcome: Outcome | None
    next_run_at: datetime | None = None
    errors: tuple[str, ...] = ()
    reply: ScheduleReply | None = None  # the consumer's, whole

    @property
    def is_good(self) -> bool:
        return self.outcome not in {None, Outcome.REJECTED, Outcome.UNKNOWN}


def read(command: Command, max_payload_bytes: int) -> ReadCommand:
    """Return the command as the consumer would read it."""
    raw = RawCommand(orjson.dumps(command.content), command.type, KEYS[command.type])
    return read_command(raw, datetime.now(UTC), max_payload_bytes)


def check_command(command: Command, max_payload_bytes: int) -> Answer | None:
    """Return the verdict of a command that the consumer would refuse; None if only the consumer can tell."""
    checked = read(command, max_payload_bytes)
    return _rejected(command, checked.errors) if isinstance(checked, Refused) else None


@dataclass(slots=True)
class CommandSender:
    broker: Broker
    names: Names
    amqp_url: str
    reply_timeout: float
    max_payload_bytes: int
    stop: Stop

    async def send(self, commands: Sequence[Command], operator: str) -> list[Answer]:
        """Send commands in the name of a user, and return one verdict each, in order. Raises NotSent."""
        checked = {number: check_command(one, self.max_payload_bytes) for number, one in enumerate(commands)}
        wanted = {uuid4().hex: number for number, verdict in checked.items() if verdict is None}
        answers: dict[int, Answer] = {}
        begun: list[int] = []
        if wanted:
            try:
                async with asyncio.timeout(self.reply_timeout):
                    await self._exchange(commands, wanted, operator, answers, begun)
            except TimeoutError:
                if not begun:
                    raise NotSent("RabbitMQ does not answer") from None
            except DeliveryError:
                if len(begun) == 1:  # else the broker has taken those before
                    raise NotSent("no queue took the command: run python -m shared.topology") from None
            except BROKER_ERRORS as error:
                if not begun:
                    raise NotSent(describe(error)) from None
        return [
            checked[number] or answers.get(number) or Answer(_id_of(one), None) for number, one in enumerate(commands)
        ]

    async def _exchange(
        self,
        commands: Sequence[Command],
        wanted: dict[str, int],
        operator: str,
        answers: dict[int, Answer],
        begun: list[int],
    ) -> None:
        """Publish the wanted commands, and gather answers until all have come. The caller limits the time. `begun` has
        those that the broker may have.
        """
        async with self.broker.open_channel() as channel:
            with lost_connections_as_errors():
                # Deleted as soon as the channel is closed: the connection stays.
                replies = await channel.declare_queue(exclusive=True, auto_delete=True)
                async with Inbox.consuming(channel, replies.name) as inbox:
                    for correlation_id, number in wanted.items():
                        begun.append(number)
                        await self._publish(channel, commands[number], operator, replies.name, correlation_id)
                    while len(answers) < len(wanted):
                        messages = await inbox.next_batch(len(wanted), 0.01, self.stop)
                        if not messages:
                            return
                        for message in messages:
                            place = wanted.get(message.correlation_id or "")
                            if place is not None:
                                answers[place] = _read_reply(_id_of(commands[place]), message.body)
                        await inbox.acknowledge(messages)

    async def _publish(
        self, channel: WireChannel, command: Command, operator: str, reply_to: str, correlation_id: str
    ) -> None:
        exchange = await channel.get_exchange(self.names.commands, ensure=False)
        message = Message(
            orjson.dumps(command.content),
            type=command.type,
            app_id=CONSOLE_APP_ID,
            headers={OPERATOR_HEADER: operator},
            content_type="application/json",
            delivery_mode=DeliveryMode.PERSISTENT,
            reply_to=reply_to,
            correlation_id=correlation_id,
            message_id=correlation_id,
            user_id=user_of(self.amqp_url) if command.owns else None,
        )
        await exchange.publish(message, KEYS[command.type], timeout=self.reply_timeout)


def _read_reply(job_id: str, body: bytes) -> Answer:
    reply = orjson.loads(body)
    next_run_at = reply.get("next_run_at")
    return Answer(
        job_id,
        Outcome(reply["outcome"]),
        datetime.fromisoformat(next_run_at) if next_run_at else None,
        tuple(reply.get("errors", ())),
        ScheduleReply.model_validate(reply),
    )


def user_of(amqp_url: str) -> str:
    user, _, _ = (parse_address(amqp_url).user or "guest").partition(":")
    return unquote(user)


def _rejected(command: Command, errors: Sequence[str]) -> Answer:
    return Answer(_id_of(command), Outcome.REJECTED, errors=tuple(errors))


def _id_of(command: Command) -> str:
    job_id = command.content.get("id")
    return job_id if isinstance(job_id, str) else ""
