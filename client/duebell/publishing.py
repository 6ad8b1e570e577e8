"""Brings a command to Duebell within a deadline, across lost connections and broker restarts.

A command counts as sent when the broker has confirmed it. If the connection is lost before that, the result is
*unknown*, and the command is sent again: a copy does no harm, because Duebell recognizes a command by its id and
revision (or trigger_id). An error that another try cannot change (no such exchange, no right) is raised at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self, TypeVar

from duebell.errors import NoReply, NotAllowed, Unconfirmed, Unroutable
from duebell.link import BROKER_TROUBLE, Link, pause_after
from duebell.messages import ScheduleReply
from duebell.outgoing import Outgoing
from duebell.session import Session

log = logging.getLogger("duebell")

T = TypeVar("T")


class Publisher:
    """Publishes commands. Any number of tasks may use it at once: they share a channel."""

    def __init__(self, link: Link, exchange: str) -> None:
        self._link = link
        self._exchange = exchange
        self._stack = AsyncExitStack()
        self._session: Session | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._stack.aclose()

    async def send(self, outgoing: Outgoing, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._persist(lambda session: session.publish(outgoing))
        except TimeoutError:
            raise _unconfirmed(outgoing, timeout) from None

    async def ask(self, outgoing: Outgoing, timeout: float) -> ScheduleReply:
        """Send a command and return its reply. If a reply is lost with its connection, the command is sent again, and
        Duebell answers what it knows of it.
        """
        confirmed = asyncio.Event()
        try:
            async with asyncio.timeout(timeout):
                return await self._persist(lambda session: session.ask(outgoing, confirmed))
        except TimeoutError:
            if not confirmed.is_set():
                raise _unconfirmed(outgoing, timeout) from None
            raise NoReply(f"{outgoing.id}: sent, but no verdict within {timeout:g} s") from None

    async def _persist(self, work: Callable[[Session], Awaitable[T]]) -> T:
        tries = 0
        while True:
            try:
                return await self._try(work)
            except BROKER_TROUBLE as error:
                log.info("not confirmed yet: %s: %s", type(error).__name__, error)
            await asyncio.sleep(pause_after(tries))
            tries += 1

    async def _try(self, work: Callable[[Session], Awaitable[T]]) -> T:
        session = await self._shared_session()
        try:
            return await work(session)
        except (NotAllowed, Unroutable):
            if not session.is_lost:
                raise
        # The broker closed the channel over one of the messages in flight on it. Alone, it shows whether over this one.
        async with Session.opened(self._link, self._exchange) as alone:
            return await work(alone)

    async def _shared_session(self) -> Session:
        async with self._opening:
            if self._session is None or self._session.is_lost:
                self._session = None
                await self._stack.aclose()
                self._session = await self._stack.enter_async_context(Session.opened(self._link, self._exchange))
            return self._session


def _unconfirmed(outgoing: Outgoing, timeout: float) -> Unconfirmed:
    return Unconfirmed(f"{outgoing.id}: no confirmation within {timeout:g} s; it may have arrived all the same")
