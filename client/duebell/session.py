"""One channel, from its opening to its loss. It publishes with the broker's confirm, and takes the replies to what was
sent.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage
from aio_pika.exceptions import PublishError
from pydantic import ValidationError

from duebell.errors import NotAllowed, Unroutable
from duebell.link import Link, lost_connections_as_errors, refusals_as_errors
from duebell.messages import ScheduleReply
from duebell.outgoing import Outgoing

log = logging.getLogger("duebell")


class Session:
    def __init__(self, channel: AbstractChannel, exchange: AbstractExchange) -> None:
        self._channel = channel
        self._exchange = exchange
        self._reply_queue: str | None = None
        self._opening_replies = asyncio.Lock()
        self._waiting: dict[str, asyncio.Future[ScheduleReply]] = {}
        channel.close_callbacks.add(lambda *_: self._end())

    @classmethod
    @asynccontextmanager
    async def opened(cls, link: Link, exchange: str) -> AsyncIterator["Session"]:
        async with link.channel() as channel:
            with lost_connections_as_errors():
                # Without asking whether it is there: that would need a right that a publisher does not need.
                session = cls(channel, await channel.get_exchange(exchange, ensure=False))
            yield session

    @property
    def is_lost(self) -> bool:
        return self._channel.is_closed

    async def publish(self, outgoing: Outgoing, reply_to: str | None = None, correlation_id: str | None = None) -> None:
        """Publish the command. Returns when the broker has confirmed that it is in a queue; errors of the broker are
        raised.
        """
        message = Message(
            outgoing.body,
            # Returns are matched by message_id: two in flight with the same one could hide a loss.
            message_id=uuid4().hex,
            type=outgoing.type,
            content_type="application/json",
            delivery_mode=DeliveryMode.PERSISTENT,
            timestamp=outgoing.made_at,
            user_id=outgoing.user_id,
            app_id=outgoing.app_id,
            headers=dict(outgoing.headers),
            reply_to=reply_to,
            correlation_id=correlation_id,
        )
        with refusals_as_errors(), lost_connections_as_errors():
            try:
                await self._exchange.publish(message, outgoing.routing_key, mandatory=True)
            except PublishError:
                raise Unroutable(f"no queue is bound to {self._exchange.name} for {outgoing.routing_key}") from None

    async def ask(self, outgoing: Outgoing, confirmed: asyncio.Event) -> ScheduleReply:
        """Publish the command and wait for the verdict. If the channel is lost, so is the reply, and a ConnectionError
        is raised.
        """
        reply_queue = await self._replies()
        correlation_id = uuid4().hex
        future: asyncio.Future[ScheduleReply] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = future
        try:
            await self.publish(outgoing, reply_queue, correlation_id)
            confirmed.set()
            return await future
        finally:
            del self._waiting[correlation_id]
            future.cancel()

    async def _replies(self) -> str:
        async with self._opening_replies:
            if self._reply_queue is None:
                try:
                    with refusals_as_errors(), lost_connections_as_errors():
                        # Named by the broker: most users may declare that much.
                        queue = await self._channel.declare_queue(exclusive=True, auto_delete=True)
                        await queue.consume(self._take, no_ack=True)
                except NotAllowed as error:
                    raise NotAllowed(f"{error}: the verdict needs a queue amq.gen-…; wait=False needs none") from error
                self._reply_queue = queue.name
            return self._reply_queue

    async def _take(self, message: AbstractIncomingMessage) -> None:
        future = self._waiting.get(message.correlation_id or "")
        if future is None or future.done():
            return  # the caller has stopped waiting
        try:
            future.set_result(ScheduleReply.model_validate_json(message.body))
        except ValidationError:
            log.warning("a reply that is none was ignored")

    def _end(self) -> None:
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(ConnectionError("the connection was lost before the reply came"))
