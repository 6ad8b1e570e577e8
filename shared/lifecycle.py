"""Start and stop. The first SIGTERM or SIGINT asks the work to take no more and finish what is in flight; when the
grace time is over, or at a second signal, what is left is abandoned. Work that dies takes the process with it.
"""

import asyncio
import gc
import logging
import math
import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import uvloop

from shared.amqp.wire import find_untested_version
from shared.logs import get_log
from shared.pulse import resting

# How long what is left of a dying process may take to clear up after itself.
LAST_SECONDS = 10.0

# How many new objects there may be before the youngest are looked through for cycles: those of a few batches.
GARBAGE_THRESHOLD = 50_000


class CannotStart(Exception):
    """Something that only an operator can mend, said in one line."""


class EndedByItself(Exception):
    """A loop that should run as long as its process did not: a bug, and the process goes down with it."""


class Stop:
    """Set once, by a signal or by a test. `failure` is what a loop died of, if one did."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._failed = asyncio.Event()
        self.failure: Exception | None = None
        self.requested_at = math.inf  # by time.monotonic()

    def request(self) -> None:
        self.requested_at = min(self.requested_at, time.monotonic())
        self._event.set()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()

    def fail(self, error: Exception) -> None:
        self.failure = self.failure or error
        self._failed.set()

    async def wait_for_failure(self) -> None:
        await self._failed.wait()

    async def sleep(self, seconds: float) -> None:
        """Shorter if the stop comes. A pause between two turns is nothing to be found stuck in."""
        with resting():
            await first_of(self._event.wait(), asyncio.sleep(seconds))


async def first_of(*awaitables: Awaitable[Any]) -> None:
    """Returns when one is done, or raises what it raised; the others are cancelled and awaited."""
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(a) for a in awaitables]
    done: set[asyncio.Future[Any]] = set()
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def for_life(loop: Awaitable[None], stop: Stop, name: str) -> None:
    """Around every loop that should run until the stop. A task group takes no notice of a child that returns, or that
    is cancelled by something other than the group: this makes either a failure that nobody can miss.
    """
    try:
        await _to_the_end(loop, stop, name)
    except Exception as error:
        stop.fail(error)
        raise


async def _to_the_end(loop: Awaitable[None], stop: Stop, name: str) -> None:
    try:
        await loop
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        raise EndedByItself(f"{name} was cancelled by nobody") from None
    if not stop.requested:
        raise EndedByItself(f"{name} ended before it was told to")


async def end(task: "asyncio.Task[Any]") -> None:
    """Cancels until it is heard: a cancellation that comes at the same moment as an answer can be swallowed on the way
    (by asyncio.wait_for, in Python 3.11), and its task would go on as if nothing had been said.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.5)


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Something does not let go of the process, which has to be left by force."""

    error: Exception | None = None


def run_service(work: Callable[[Stop], Coroutine[Any, Any, None]], grace_seconds: float) -> int:
    """The exit status: 0 after an orderly stop, 1 if the work died, did not finish in time or cannot start."""
    if problem := find_untested_version():
        return _say_last_words(CannotStart(problem))
    _collect_garbage_seldom()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        ending = runner.run(_run(work, grace_seconds))
        if isinstance(ending, Abandoned):
            if ending.error is not None:
                _say_last_words(ending.error)
            os._exit(1)  # the loop would wait for what is left, and that may be for ever
    # Only here is nothing left that could say something after it.
    return ending if isinstance(ending, int) else _say_last_words(ending)


def _collect_garbage_seldom() -> None:
    """Batches make thousands of objects at a time, and hardly a cycle among them: by its defaults Python would look for
    cycles at every seventh hundred, through everything there is again and again, for a third of the service's time.
    """
    gc.freeze()  # what was imported stays for good
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 50)


def _say_last_words(error: BaseException) -> int:
    reasons = _reasons(error)
    if isinstance(reasons[0], CannotStart):
        get_log().error("cannot_start", problem=str(reasons[0]))
    else:
        get_log().error("died", error="; ".join(dict.fromkeys(map(_describe, reasons))), exc_info=error)
    # What is cleared away from here on (a connection that was just being made, say) has nothing to add.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    return 1


def _reasons(error: BaseException) -> list[BaseException]:
    """What went wrong, without the task groups that it went through; but with the loop that it went through first."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            for name in getattr(error, "__notes__", ()):
                inner.add_note(name)
        return [reason for inner in error.exceptions for reason in _reasons(inner)]
    return [error]


def _describe(reason: BaseException) -> str:
    loop = getattr(reason, "__notes__", ["the service"])[0]  # see shared.pulse
    return " ".join(f"{loop}: {type(reason).__name__}: {reason}".split())


async def _run(
    work: Callable[[Stop], Coroutine[Any, Any, None]], grace_seconds: float
) -> int | BaseException | Abandoned:
    log, stop, hurry = get_log(), Stop(), asyncio.Event()

    def on_signal() -> None:
        if stop.requested:
            hurry.set()
        else:
            log.info("stopping", grace_seconds=grace_seconds)
            stop.request()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)

    worker = asyncio.create_task(for_life(work(stop), stop, "the service"), name="work")
    await first_of(asyncio.wait({worker}), stop.wait(), stop.wait_for_failure())
    if stop.failure is None and not worker.done():
        await first_of(asyncio.wait({worker}), stop.wait_for_failure(), asyncio.sleep(grace_seconds), hurry.wait())
    if stop.failure is not None:
        await asyncio.wait({worker}, timeout=LAST_SECONDS)
        if not worker.done():
            return Abandoned(stop.failure)
    if not worker.done():
        log.warning("abandoned", reason="second signal" if hurry.is_set() else "grace time over")
        worker.cancel()
        await asyncio.wait({worker}, timeout=5.0)
        return 1 if worker.done() else Abandoned()
    if error := worker.exception():
        return error
    log.info("stopped")
    return 0
