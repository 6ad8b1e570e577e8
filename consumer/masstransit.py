"""Takes what MassTransit applications ask of a scheduler. They send it to one exchange, and name the exchange that a
message is for in its body. So RabbitMQ cannot decide who may reach which: a message goes to targets alone whose delay
exchanges are open (see consumer.delayed), and the permission to write to MassTransit's exchange is one for all of them.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from consumer.commands.delayed import DelayedMessage, RefusedDelayed
from consumer.commands.masstransit import in_masstransits_words, read_masstransit, read_occurrence
from consumer.commands.merge import Answer
from shared.amqp.message import IncomingMessage
from shared.contract.names import Names

Read = DelayedMessage | IncomingMessage | RefusedDelayed


class CarriedOut(msgspec.Struct, frozen=True, gc=False):
    """A command that is stored, or that changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MassTransit:
    """Reads envelopes of MassTransit, and hands commands to the handler of commands."""

    names: Names
    virtual_host: str
    max_body_bytes: int
    commands: Callable[[Sequence[IncomingMessage]], Awaitable[list[Answer]]]

    def sent(self, message: IncomingMessage) -> bool:
        """Tell whether the message is an envelope of MassTransit, or the event of a recurring message."""
        return message.exchange in {self.names.masstransit, self.names.events}

    def read(self, message: IncomingMessage, now: datetime) -> Read:
        if message.exchange == self.names.events:
            return read_occurrence(message)
        return read_masstransit(message, self.virtual_host, now, self.max_body_bytes)

    async def carry_out(self, commands: Sequence[IncomingMessage]) -> list[CarriedOut | RefusedDelayed]:
        """Store commands. After it returns, each that was not refused is committed."""
        return [
            RefusedDelayed("; ".join(map(in_masstransits_words, answer.errors))) if answer.parked else CarriedOut()
            for answer in await self.commands(commands)
        ]
