"""How one event is handled, from its arrival to its acknowledgement.

Whatever the handler does, the event ends in one of three ways: acknowledged, in `<queue>.failed`, or back in the queue
because this process or its connection went away.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypedDict

from aio_pika.abc import AbstractIncomingMessage
from pydantic import ValidationError

from duebell.link import BROKER_TROUBLE, lost_connections_as_errors, pause_after
from duebell.messages import ScheduleDue
from duebell.names import check_binding, check_queue
from duebell.seen import InMemorySeen, Seen

MAX_HANDLER_PAUSE_SECONDS = 60.0

Handler = Callable[[ScheduleDue], Awaitable[None]]

log = logging.getLogger("duebell")


@dataclass(frozen=True, slots=True)
class Listening:
    """What to listen to, and how.

    prefetch         events in hand at once, and so handlers that run at once
    attempts         how often a handler that raises is tried, in all, before its event goes to `<queue>.failed`
    retry_pause      seconds before the second attempt; doubled for each further one, a minute at most
    handler_timeout  seconds for one attempt; all of them must stay below the broker's consumer timeout (30 minutes)
    declare          False if another application or an operator declares and binds the queue
    """

    topic: str
    queue: str
    handler: Handler
    seen: Seen = field(default_factory=InMemorySeen)
    prefetch: int = 20
    attempts: int = 5
    retry_pause: float = 1.0
    handler_timeout: float = 300.0
    declare: bool = True

    def __post_init__(self) -> None:
        check_binding(self.topic)
        check_queue(self.queue)
        if not _is_async(self.handler):
            name = getattr(self.handler, "__qualname__", repr(self.handler))
            raise TypeError(f"{name} is no `async def` function; run blocking code in it with asyncio.to_thread")


class ListeningOptions(TypedDict, total=False):
    """The options of a listener, which `Listening` explains."""

    seen: Seen
    prefetch: int
    attempts: int
    retry_pause: float
    handler_timeout: float
    declare: bool


def _is_async(handler: object) -> bool:
    """Tell whether the handler is asynchronous. A decorator's wrapper (`functools.wraps`) of one is, and so is an
    object with `async def __call__`.
    """
    return callable(handler) and any(
        inspect.iscoroutinefunction(each) for each in (handler, inspect.unwrap(handler), type(handler).__call__)
    )


class _HandlerFailed(Exception):
    pass


async def handle(message: AbstractIncomingMessage, listening: Listening) -> None:
    try:
        due = ScheduleDue.model_validate_json(message.body)
    except ValidationError as error:
        log.warning("%s: not a ScheduleDue, put aside in %s.failed: %s", message.routing_key, listening.queue, error)
        return await _acknowledge_or_reject(message, done=False)
    return await _acknowledge_or_reject(message, done=await _handled(due, listening))


async def _handled(due: ScheduleDue, listening: Listening) -> bool:
    """Call the handler until it succeeds. Return False when it has failed for the last time."""
    failures = store_failures = 0
    while True:
        try:
            async with listening.seen.once(due.idempotency_key) as is_first:
                if is_first:
                    await _attempt(due, listening)
            return True
        except _HandlerFailed as failed:
            failures += 1
            cause = failed.__cause__
            log.warning("%s: attempt %d of %d failed", due.id, failures, listening.attempts, exc_info=cause)
            if failures >= listening.attempts:
                log.warning("%s: put aside in %s.failed", due.id, listening.queue)
                return False
            await asyncio.sleep(min(MAX_HANDLER_PAUSE_SECONDS, listening.retry_pause * 2 ** (failures - 1)))
        except Exception as error:  # noqa: BLE001 - a store that is down for a while is no fault of the event
            store_failures += 1
            log.warning("%s: cannot tell whether it was handled (%r); waiting", due.id, error)
            await asyncio.sleep(pause_after(store_failures))


async def _attempt(due: ScheduleDue, listening: Listening) -> None:
    try:
        async with asyncio.timeout(listening.handler_timeout):
            await listening.handler(due)
    except Exception as error:
        raise _HandlerFailed from error


async def _acknowledge_or_reject(message: AbstractIncomingMessage, *, done: bool) -> None:
    try:
        with lost_connections_as_errors():
            await (message.ack() if done else message.reject(requeue=False))
    except BROKER_TROUBLE as error:
        # The broker will send it again. If it was handled, that copy is skipped.
        log.info("not acknowledged: %s: %s", type(error).__name__, error)
