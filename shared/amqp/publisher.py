"""Publishes messages and returns a result for each. All events, parked commands and replies go through it.

A message counts as published only when the broker has confirmed it. After a timeout or a lost channel the result is
*unknown*, not failed: the broker may have the message, so the caller must be ready to send it again. The publisher then
closes the channel, because its outstanding confirms can no longer be told from those of the next batch.
"""

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Self

from aiormq.exceptions import ChannelClosed, ConnectionInternalError

from shared.amqp.connection import BROKER_ERRORS, CHANNEL_TIMEOUT, Broker
from shared.amqp.message import OutgoingMessage, PublishResult, RawMessage
from shared.amqp.wire import NO_LIMIT, Confirms, PublishBatch, fits
from shared.contract.names import DIRECT_REPLY_PREFIX

# The share of the caller's timeout in which confirms are awaited. The rest leaves time to return those that came.
ANSWER_TIME_SHARE = 0.95

# Erlang's external term format: the tag of a process id, and how many bytes of numbers follow the name of its node.
_TERM = 131
_PROCESS_ID_NUMBER_BYTES = {ord("X"): 12, ord("g"): 9}
# The name of the node is an atom: its tag, and how many bytes its length takes.
_ATOM_LENGTH_BYTES = {ord("w"): 1, ord("s"): 1, ord("v"): 2, ord("d"): 2}


class Publisher:
    """Publishes on its own channel, opened when needed and replaced after errors. One task at a time uses it."""

    def __init__(self, broker: Broker, *, owns_exchanges: bool = True) -> None:
        """Take the connection. `owns_exchanges`: the publisher publishes to exchanges of Duebell alone, which it may
        declare again.
        """
        self._broker = broker
        self._owns_exchanges = owns_exchanges
        self._stack = AsyncExitStack()
        self._channel: Confirms | None = None
        self._unchecked_results: frozenset[PublishResult] = frozenset()
        self._frame_room = NO_LIMIT
        self.close_reason = ""  # why the broker closed channel or connection, if over a message of the last publish

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._retire()

    async def publish(self, messages: Sequence[OutgoingMessage], timeout: float) -> list[PublishResult]:
        """Publish, and return one result per message, in order, within the timeout. Broker errors do not raise."""
        return await self._publish(messages, lambda channel: channel.publish(messages), timeout)

    async def publish_raw(self, messages: Sequence[RawMessage], timeout: float) -> list[PublishResult]:
        """Publish messages with the properties that they came with, as `publish` does. Those that do not fit into a
        frame are left out: the broker would close the connection, again and again. How large a frame is, the first
        channel tells.
        """
        is_sent = [fits(message, self._frame_room) for message in messages]
        sent = [message for message, its in zip(messages, is_sent, strict=True) if its]
        results = iter(await self._publish(sent, lambda channel: channel.publish_raw(sent), timeout))
        return [next(results) if its else PublishResult.TOO_LARGE for its in is_sent]

    async def _publish(
        self, messages: Sequence[object], write: Callable[[Confirms], Awaitable[PublishBatch]], timeout: float
    ) -> list[PublishResult]:
        if not messages:
            return []
        deadline = asyncio.get_running_loop().time() + ANSWER_TIME_SHARE * timeout
        results = [PublishResult.UNKNOWN] * len(messages)
        self.close_reason = ""
        try:
            async with asyncio.timeout(timeout):
                await self.recover_channel()
                results = await self._confirm(await self._open(), write, deadline)
        except BROKER_ERRORS:
            pass  # the results stay UNKNOWN
        finally:
            # Also when another error ends it: the state of the channel is then unknown, too.
            self._unchecked_results |= frozenset(results)
        return results

    async def _confirm(
        self, channel: Confirms, write: Callable[[Confirms], Awaitable[PublishBatch]], deadline: float
    ) -> list[PublishResult]:
        closing = channel.closing
        try:
            batch = await write(channel)
            left = deadline - asyncio.get_running_loop().time()
            await asyncio.wait({batch.answered, closing}, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)
            reason = closing.exception() if closing.done() and not closing.cancelled() else None
            closed_by_broker = self._is_over_a_message(reason)
            if closed_by_broker:
                self.close_reason = _close_reason(reason)
            unanswered = PublishResult.CLOSED if closed_by_broker else PublishResult.UNKNOWN
            return [unanswered if result is PublishResult.UNKNOWN else result for result in batch.results]
        finally:
            closing.cancel()  # this future was made for this call: the channel would keep it for good

    def _is_over_a_message(self, reason: BaseException | None) -> bool:
        """Tell whether the broker closed the channel because it cannot take a message.

        It closes the whole connection if a part of it fails over a message of an application, as over a header that a
        stream cannot store. No event of Duebell does that: the cause was on another channel of the connection.
        """
        if isinstance(reason, ConnectionInternalError):
            return not self._owns_exchanges
        return isinstance(reason, ChannelClosed)

    async def recover_channel(self) -> None:
        """Replace the channel if the last publish requires it, which may take seconds while the broker does not answer.
        The next publish calls this first, within its timeout. A caller that publishes while it holds row locks calls it
        after it has released them. Work that a timeout cuts off is done by the next call.
        """
        # After a nack: a full queue refuses a channel until it has room below its limit. If an operator removes that
        # limit, RabbitMQ does not tell the channel, but it accepts a new one. After a return that named no single
        # message, more returns may follow, which would count for the next batch.
        if self._unchecked_results - {PublishResult.CONFIRMED, PublishResult.UNROUTED}:
            await self._retire()
        if self._owns_exchanges and self._unchecked_results & {PublishResult.CLOSED, PublishResult.RETURNED}:
            await self._redeclare_topology()
        self._unchecked_results = frozenset()

    async def _open(self) -> Confirms:
        if self._channel is None or self._channel.is_closed:
            await self._retire()
            channel = await self._stack.enter_async_context(self._broker.open_channel())
            self._channel = await channel.confirms()
            self._frame_room = self._channel.frame_room
        return self._channel

    async def _redeclare_topology(self) -> None:
        # The usual reason for a closed channel or a returned event is that an exchange or a queue was deleted.
        with suppress(*BROKER_ERRORS):
            async with asyncio.timeout(CHANNEL_TIMEOUT):
                await self._broker.redeclare()

    async def _retire(self) -> None:
        self._channel = None
        await self._stack.aclose()


def _close_reason(reason: BaseException | None) -> str:
    if isinstance(reason, ConnectionInternalError):
        return f"the broker failed and closed the connection, and its log says why: {reason}"
    return str(reason)


def can_be_answered(reply_to: str | None) -> bool:
    """Return whether a reply to this address may be published.

    A reply goes to a queue by its name, and a name without a queue does no harm. RabbitMQ's direct reply addresses do:
    they hold an Erlang process id, which the broker decodes when a reply is published. If the id is not one of its own,
    it closes the whole connection, and replies to other applications are lost. So a direct address must have the form
    that the broker gives it, to the byte.
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
