"""Sends many commands, a bounded number of them at a time, so that memory does not grow with their number."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable

from duebell.errors import DuebellError, SomeFailed
from duebell.messages import ScheduleRequest

# When so many have failed, the rest most likely would, too.
MAX_FAILURES = 100


async def send_many(
    requests: Iterable[ScheduleRequest] | AsyncIterable[ScheduleRequest],
    send: Callable[[ScheduleRequest], Awaitable[object]],
    in_flight: int,
) -> int:
    """Send the requests, and return how many were sent. A request that fails stops no other: one SomeFailed tells of
    all failures in the end. An object that is no request ends the sending with a TypeError, once the requests before it
    are sent.
    """
    sent, failures, slots = 0, dict[str, DuebellError](), asyncio.Semaphore(in_flight)
    mistaken: str | None = None

    async def send_one(request: ScheduleRequest) -> None:
        nonlocal sent
        try:
            await send(request)
            sent += 1
        except DuebellError as error:
            failures[request.id] = error
        finally:
            slots.release()

    async with asyncio.TaskGroup() as tasks:
        async for request in _each(requests):
            if not isinstance(request, ScheduleRequest):
                mistaken = type(request).__name__
                break
            await slots.acquire()
            if len(failures) >= MAX_FAILURES:
                break
            tasks.create_task(send_one(request))
    if mistaken is not None:
        raise TypeError(f"schedule_many takes requests made by duebell.request, not {mistaken}")
    if failures:
        raise SomeFailed(sent, failures, gave_up=len(failures) >= MAX_FAILURES)
    return sent


async def _each(requests: Iterable[object] | AsyncIterable[object]) -> AsyncIterator[object]:
    if isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request
