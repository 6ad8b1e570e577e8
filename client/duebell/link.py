"""One connection to the broker, kept up for as long as its block lasts.

After a loss everything that belonged to the old connection (channels, consumers, reply queues) is gone for good, and
its users start again on the new connection: no state is restored by half. Every wait has a deadline, its own or its
caller's.
"""

import asyncio
import logging
import random
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Self

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import (
    AMQPError,
    ChannelAccessRefused,
    ChannelInvalidStateError,
    ChannelLockedResource,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    InvalidFrameError,
    ProbableAuthenticationError,
)

from duebell.address import host_of, urls_to_try, user_of, virtual_host_of
from duebell.errors import DuebellError, InvalidURL, NotAllowed, Unreachable, Unroutable

CONNECT_TIMEOUT = 10.0
# With several hosts, each has a share of its own: one that accepts the connection and says nothing is left.
CONNECT_TIMEOUT_OF_EACH = 5.0
CLOSE_TIMEOUT = 3.0
MAX_CONNECT_PAUSE_SECONDS = 5.0
# So long a node may block publishers, in a memory or disk alarm, before another one is tried.
MAX_BLOCKED_SECONDS = 30.0
# How often to look whether it does.
LOOK_SECONDS = 1.0

# How OpenSSL names an answer that is no TLS: its versions differ.
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})

# What a lost or stalled broker surfaces as.
BROKER_TROUBLE = (AMQPError, ChannelInvalidStateError, OSError, TimeoutError)

log = logging.getLogger("duebell")


class Link:
    def __init__(
        self, url: str, name: str, timeout: float, *, max_blocked_seconds: float = MAX_BLOCKED_SECONDS
    ) -> None:
        self._max_blocked_seconds = max_blocked_seconds
        self._urls = urls_to_try(url)
        self._host = 0  # the place in `_urls` of the host that is connected, or tried
        self._name = name
        self._timeout = timeout
        self._connection: AbstractConnection | None = None
        self._up = asyncio.Event()
        self._first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._problem = "no answer"
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Return when the broker has been reached once. Raises at once what no later try would change."""
        self._keeper = asyncio.create_task(self._keep_connected(), name=f"duebell {self._name}")
        try:
            async with asyncio.timeout(self._timeout):
                await self._first
        except BaseException as error:
            await self._end()
            if isinstance(error, TimeoutError):
                raise Unreachable(f"no connection within {self._timeout:g} s: {self._problem}") from None
            raise
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._end()

    async def wait_until_up(self) -> None:
        await self._up.wait()

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[AbstractChannel]:
        """Open a channel, and wait for the connection before, for as long as the caller lets it. Publishes on the
        channel are confirmed, or raise.
        """
        await self._up.wait()
        with lost_connections_as_errors():
            if self._connection is None:
                raise ConnectionError("the connection was lost")
            channel = self._connection.channel(publisher_confirms=True, on_return_raises=True)
        try:
            with lost_connections_as_errors():
                async with asyncio.timeout(CONNECT_TIMEOUT):
                    await channel.initialize()
            yield channel
        finally:
            await _close_quietly(channel)

    async def _end(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})

    async def _keep_connected(self) -> None:
        tries = 0
        while True:
            try:
                with lost_connections_as_errors():
                    await self._connect_until_lost()
                self._problem, tries = "the connection was closed", 0
            except Exception as error:  # noqa: BLE001 - whatever it is, there is a line about it and another try
                self._problem = f"{type(error).__name__}: {error}"
                if not self._first.done() and (refusal := self._refusal_of(error)):
                    self._first.set_exception(refusal)
                    return
            # The pause between two tries of one host grows as usual; meanwhile the other hosts are tried.
            pause = pause_after(tries // len(self._urls)) / len(self._urls)
            tries += 1
            self._host = (self._host + 1) % len(self._urls)
            log.warning("%s: no connection (%s), next try in %.1f s", self._name, self._problem, pause)
            await asyncio.sleep(pause)

    async def _connect_until_lost(self) -> None:
        url = self._urls[self._host]
        async with asyncio.timeout(CONNECT_TIMEOUT if len(self._urls) == 1 else CONNECT_TIMEOUT_OF_EACH):
            connection = await aio_pika.connect(url, client_properties={"connection_name": self._name})
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        connection.close_callbacks.add(lambda *_: None if lost.done() else lost.set_result(None))
        try:
            self._connection = connection
            self._up.set()
            if not self._first.done():
                self._first.set_result(None)
            if len(self._urls) > 1:
                await self._wait_until_lost_or_blocked(connection, lost)
            await lost
        finally:
            self._up.clear()
            self._connection = None
            await _close_quietly(connection)

    async def _wait_until_lost_or_blocked(self, connection: AbstractConnection, lost: "asyncio.Future[None]") -> None:
        """Returns when the connection is lost. Raises if the node blocks publishers for long: another one may not."""
        while connection.transport is not None and not lost.done():
            ready = asyncio.ensure_future(connection.transport.ready())
            try:
                done, _ = await asyncio.wait(
                    {ready, lost}, timeout=self._max_blocked_seconds, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                ready.cancel()
            if not done:
                raise ConnectionError("the broker blocks publishers")
            await asyncio.wait({lost}, timeout=LOOK_SECONDS)

    def _refusal_of(self, error: Exception) -> DuebellError | None:
        refusal = _refusal_of(error, self._urls[self._host])
        # Another host may have a name.
        return None if isinstance(refusal, Unreachable) and len(self._urls) > 1 else refusal


def _refusal_of(error: Exception, url: str) -> DuebellError | None:
    """Return what is wrong with the URL, if the error of the first connection says so. None: the broker is away, and
    may come back.
    """
    user, virtual_host = user_of(url), virtual_host_of(url)
    match error:
        case ProbableAuthenticationError():
            return NotAllowed(f"the broker refuses user {user!r}, or its password: {error}")
        # All that aiormq says of the broker's reason: it closed the connection instead of opening the virtual host.
        case InvalidFrameError() if "Connection.OpenOk" in str(error) and "Connection.Close " in str(error):
            return NotAllowed(
                f"the broker refuses the virtual host {virtual_host!r} to user {user!r}: "
                "it does not exist, the user has no right to it, or it takes no more connections"
            )
    return _refusal_of_transport(error.__cause__ or error, host_of(url))


def _refusal_of_transport(error: BaseException, host: str) -> DuebellError | None:
    match error:
        case socket.gaierror() as unknown if unknown.errno == socket.EAI_NONAME:
            return Unreachable(f"no host has the name {host!r}: {unknown.strerror}")
        case ssl.SSLCertVerificationError() as untrusted:
            return Unreachable(f"the certificate of {host!r} cannot be trusted: {untrusted.verify_message}")
        case ssl.SSLError() as plain if plain.reason in _NO_TLS:
            return Unreachable(f"{host!r} speaks no TLS at this port: is amqp:// meant, or another port?")
        case FileNotFoundError():
            return InvalidURL("url: there is no file of the name that cafile, certfile or keyfile gives")
    return None


def pause_after(tries: int) -> float:
    """Return the pause before the next try. It doubles from 0.2 s, and is shortened at random, so that many clients do
    not all come back at once.
    """
    doubled: int = 2 ** min(tries, 10)
    return min(MAX_CONNECT_PAUSE_SECONDS, 0.2 * doubled) * random.uniform(0.7, 1.0)  # noqa: S311 - no secret


@contextmanager
def lost_connections_as_errors() -> Iterator[None]:
    """Wrap every wait for the broker. For a connection that has just been lost, aio-pika and aiormq raise a bare
    RuntimeError, or a CancelledError although no task was cancelled, which would end the waiting task without a log
    line.
    """
    try:
        yield
    except RuntimeError as error:
        raise ConnectionError(str(error)) from error
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        raise ConnectionError("the broker stopped answering") from None


@contextmanager
def refusals_as_errors() -> Iterator[None]:
    """Turn what the broker refuses for good, and closes the channel over, into errors of this client."""
    try:
        yield
    except ChannelNotFoundEntity as error:
        raise Unroutable(f"{error}: is Duebell set up on this broker, under this prefix?") from error
    except (ChannelAccessRefused, ChannelLockedResource, ChannelPreconditionFailed) as error:
        raise NotAllowed(str(error)) from error


async def _close_quietly(resource: AbstractChannel | AbstractConnection) -> None:
    with suppress(*BROKER_TROUBLE), lost_connections_as_errors():
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await resource.close()
