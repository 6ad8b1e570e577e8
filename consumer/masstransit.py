"""Takes what MassTransit applications ask of a scheduler. They send it to one exchange, and name the exchange that a
message is for in its body. So RabbitMQ cannot decide who may reach which: a message goes to targets alone whose delay
exchanges are open, and the permission to write to MassTransit's exchange is a permission for all of them.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from consumer.commands.delayed import DelayedMessage, RefusedDelayed
from consumer.commands.masstransit import (
    MassTransitMessage,
    in_masstransits_words,
    read_masstransit,
    read_occurrence,
)
from consumer.commands.merge import Answer
from consumer.store.delayed import find_open
from shared.amqp.message import IncomingMessage
from shared.contract.names import Names
from shared.postgres.pool import ACQUIRE_TIMEOUT, Pool

Read = DelayedMessage | IncomingMessage | RefusedDelayed


class CarriedOut(msgspec.Struct, frozen=True, gc=False):
    """A command that is stored, or that changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MassTransit:
    """Reads envelopes of MassTransit, and hands commands to the handler of commands."""

    pool: Pool
    names: Names
    virtual_host: str
    max_body_bytes: int
    commands: Callable[[Sequence[IncomingMessage]], Awaitable[list[Answer]]]

    def sent(self, message: IncomingMessage) -> bool:
        """Return whether it is an envelope, or the event of a recurring message."""
        return message.exchange in {self.names.masstransit, self.names.events}

    def read(self, message: IncomingMessage, now: datetime) -> Read:
        if message.exchange == self.names.events:
            return read_occurrence(message)
        return read_masstransit(message, self.virtual_host, now, self.max_body_bytes)

    async def refuse_closed(self, read: Sequence[Read]) -> Sequence[Read]:
        """Return what was read, without messages of MassTransit to targets whose delay exchanges are not open."""
        targets = {each.exchange for each in read if isinstance(each, MassTransitMessage)}
        if not targets:
            return read
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            closed = targets - await find_open(connection, targets)
        return [
            _refuse(each) if isinstance(each, MassTransitMessage) and each.exchange in closed else each for each in read
        ]

    async def carry_out(self, commands: Sequence[IncomingMessage]) -> list[CarriedOut | RefusedDelayed]:
        """Store commands. After it returns, each that was not refused is committed."""
        return [
            RefusedDelayed("; ".join(map(in_masstransits_words, answer.errors))) if answer.parked else CarriedOut()
            for answer in await self.commands(commands)
        ]


def _refuse(message: MassTransitMessage) -> RefusedDelayed:
    return RefusedDelayed(
        f"message.destination: the exchange {message.exchange!r} has no open delay exchange; an operator opens it with "
        f"`duebell delay open {message.exchange}`"
    )
