"""Reads a queue of kept messages without acknowledging: when the channel closes, RabbitMQ puts every message that was
not acknowledged back into its place.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.contract.names import Names
from shared.kept.message import KeptMessage, Kind
from shared.runtime.loops import Stop

# The limits of one look, which bound its memory.
MAX_KEPT_MESSAGES = 10_000
MAX_KEPT_BYTES = 256 * 1024 * 1024
QUIET_SECONDS = 0.5
BATCH_WAIT_SECONDS = 0.05
PUBLISH_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Found:
    """The messages that a look has found, the oldest first. `all_seen` says that the queue had no more."""

    messages: list[KeptMessage]
    all_seen: bool


@dataclass(frozen=True, slots=True)
class KeptQueue:
    kind: Kind
    names: Names
    inbox: Inbox
    publisher: Publisher

    async def look(self, limit: int = MAX_KEPT_MESSAGES) -> Found:
        """Take messages until no more come for QUIET_SECONDS, at most `limit` and MAX_KEPT_BYTES of them."""
        found: list[KeptMessage] = []
        size = 0
        while len(found) < limit and size < MAX_KEPT_BYTES:
            batch = await self._next_batch(limit - len(found))
            if not batch and self.inbox.is_lost:
                raise ConnectionError("the broker connection was lost")
            if not batch:
                return Found(found, all_seen=True)
            found += (self.kind.read(message) for message in batch)
            size += sum(len(message.body) for message in batch)
        return Found(found, all_seen=False)

    async def _next_batch(self, size: int) -> list[IncomingMessage]:
        """Return the next messages, or none if none has come for QUIET_SECONDS or the channel is lost.

        The wait is ended by a stop and not by a timeout: a timeout would drop what the inbox has gathered already.
        """
        quiet = Stop()
        end_of_wait = asyncio.get_running_loop().call_later(QUIET_SECONDS, quiet.request)
        try:
            return await self.inbox.next_batch(size, BATCH_WAIT_SECONDS, quiet)
        finally:
            end_of_wait.cancel()

    async def send_again(self, chosen: Sequence[KeptMessage]) -> list[KeptMessage]:
        """Publish the messages as they were, then take those out of the queue that the broker has confirmed. Return the
        others. A crash between the two leaves a message in the queue that was sent: it is sent twice, never lost.
        """
        originals = [one.original_message(self.names) for one in chosen]
        results = await self.publisher.publish(originals, PUBLISH_TIMEOUT)
        await self.drop([one for one, result in zip(chosen, results, strict=True) if result is PublishResult.CONFIRMED])
        return [one for one, result in zip(chosen, results, strict=True) if result is not PublishResult.CONFIRMED]

    async def drop(self, chosen: Sequence[KeptMessage]) -> None:
        """Take the messages out of the queue."""
        await self.inbox.acknowledge_only([one.message for one in chosen])
