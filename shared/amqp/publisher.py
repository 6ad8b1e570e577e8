"""Publishing with a verdict for each message. The only place that writes events, parked commands and replies.

A message counts as published when the broker has confirmed it, and only then. A timeout or a lost channel means
*unknown*, not failed: the broker may have it, so the caller must be ready to send it again, and the channel is retired
because its outstanding confirms can no longer be told apart.
"""

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Self

from aiormq.exceptions import ChannelClosed

from shared.amqp.connection import BROKER_ERRORS, CHANNEL_TIMEOUT, Broker
from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.wire import Confirms

# Of the caller's timeout: a little less than all of it, so that what was confirmed in time still counts.
ANSWER_TIME_SHARE = 0.95

DIRECT_REPLY_PREFIX = "amq.rabbitmq.reply-to."

# Erlang's external term format: the tag of a process id, and how many bytes of numbers follow the name of its node.
_TERM = 131
_PROCESS_ID_NUMBER_BYTES = {ord("X"): 12, ord("g"): 9}
# The name of the node is an atom: its tag, and how many bytes its length takes.
_ATOM_LENGTH_BYTES = {ord("w"): 1, ord("s"): 1, ord("v"): 2, ord("d"): 2}


class Publisher:
    """One channel of its own, opened when needed and replaced after trouble. For one task at a time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._stack = AsyncExitStack()
        self._channel: Confirms | None = None
        self._trouble: frozenset[PublishResult] = frozenset()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._retire()

    async def publish(self, messages: Sequence[OutgoingMessage], timeout: float) -> list[PublishResult]:
        """One verdict per message, in order, within the timeout. Never raises for what the broker does."""
        if not messages:
            return []
        last_look_at = asyncio.get_running_loop().time() + ANSWER_TIME_SHARE * timeout
        verdicts = [PublishResult.UNKNOWN] * len(messages)
        try:
            async with asyncio.timeout(timeout):
                await self.recover_channel()
                verdicts = await _publish(await self._open(), messages, last_look_at)
        except BROKER_ERRORS:
            pass  # unknown, then
        finally:
            # However it ends: a channel that something else went wrong on is not to be trusted either.
            self._trouble |= frozenset(verdicts)
        return verdicts

    async def recover_channel(self) -> None:
        """Clears up after the last publish, which may take seconds with a broker that does not answer. The next publish
        does it first, in its own time; whoever holds locks while publishing calls it as soon as they are released. What
        it does not come to is left for the next time.
        """
        # A channel that was refused by a full queue is refused for good if somebody lifts that queue's limit: RabbitMQ
        # tells it only when the queue has room again below the limit. A new channel asks for itself. And a return that
        # could not be told from others may be followed by more of them, which would be taken for the next batch's.
        if self._trouble & {PublishResult.UNKNOWN, PublishResult.CLOSED, PublishResult.NACKED, PublishResult.RETURNED}:
            await self._retire()
        if self._trouble & {PublishResult.CLOSED, PublishResult.RETURNED}:
            await self._heal_topology()
        self._trouble = frozenset()

    async def _open(self) -> Confirms:
        if self._channel is None or self._channel.is_closed:
            await self._retire()
            channel = await self._stack.enter_async_context(self._broker.open_channel())
            self._channel = await channel.confirms()
        return self._channel

    async def _heal_topology(self) -> None:
        # The usual reason for a closed channel or a returned event is an exchange or queue that somebody deleted.
        with suppress(*BROKER_ERRORS):
            async with asyncio.timeout(CHANNEL_TIMEOUT):
                await self._broker.redeclare()

    async def _retire(self) -> None:
        self._channel = None
        await self._stack.aclose()


async def _publish(channel: Confirms, messages: Sequence[OutgoingMessage], last_look_at: float) -> list[PublishResult]:
    closing = channel.closing
    try:
        batch = await channel.publish(messages)
        left = last_look_at - asyncio.get_running_loop().time()
        await asyncio.wait({batch.settled, closing}, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)
        closed_by_broker = closing.done() and not closing.cancelled() and isinstance(closing.exception(), ChannelClosed)
        unsettled = PublishResult.CLOSED if closed_by_broker else PublishResult.UNKNOWN
        return [unsettled if verdict is PublishResult.UNKNOWN else verdict for verdict in batch.verdicts]
    finally:
        closing.cancel()  # an observer of our own: it would stay with the channel for good


def can_be_answered(reply_to: str | None) -> bool:
    """Whether a reply to this address may be published.

    A reply goes to a queue by its name, and a name without a queue does no harm. RabbitMQ's direct reply addresses do:
    they hold an Erlang process id, which the broker decodes when a reply is published. Over one that it did not make
    itself, it ends the whole connection and loses the replies to other applications. So a direct address must have the
    form that the broker gives it, to the byte.
    """
    if not reply_to:
        return False
    if not reply_to.startswith(DIRECT_REPLY_PREFIX):
        return True
    process, _, key = reply_to.removeprefix(DIRECT_REPLY_PREFIX).partition(".")
    return _is_process_id(_decoded(process)) and _decoded(key) is not None


def _decoded(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _is_process_id(term: bytes | None) -> bool:
    if term is None or len(term) < 3 or term[0] != _TERM:
        return False
    if term[1] not in _PROCESS_ID_NUMBER_BYTES or term[2] not in _ATOM_LENGTH_BYTES:
        return False
    length_bytes = _ATOM_LENGTH_BYTES[term[2]]
    name = int.from_bytes(term[3 : 3 + length_bytes], "big")
    return 0 < name <= 255 and len(term) == 3 + length_bytes + name + _PROCESS_ID_NUMBER_BYTES[term[1]]
