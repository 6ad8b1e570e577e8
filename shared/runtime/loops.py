"""How the loops of a process run: until the stop comes, watched, and giving way to each other.

The watchdog: each loop marks its turns, and /healthz is red when a loop has marked none for longer than any turn may
take. A loop that waits for something outside the process (a broker that is down, an empty queue) says so with
`waiting_outside` and counts as well for as long as it waits: a restart would not help it. Which loop a call is about
follows from the task's context, as the bound values of a log do, so functions deep inside a loop need not be handed
anything. Outside a watched loop `mark_turn` and `waiting_outside` do nothing.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Gauge

from shared.errors import EndedByItself

# More than all deadlines within one turn together: statements of 30 s, publishes of 60 s at most, channels of 10 s.
MAX_TURN_SECONDS = 300.0
# After this long, a task that works without waiting lets other tasks run.
MAX_HOLD_SECONDS = 0.005


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
        with waiting_outside():
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


async def run_until_stop(loop: Awaitable[None], stop: Stop, name: str) -> None:
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


async def cancel_and_wait(task: "asyncio.Task[Any]") -> None:
    """Cancels until it is heard: a cancellation that comes at the same moment as an answer can be swallowed on the way
    (by asyncio.wait_for, in Python 3.11), and its task would go on as if nothing had been said.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.5)


@dataclass(slots=True)
class _WatchedLoop:
    watchdog: "Watchdog"
    marked_at: float
    waits: int = 0  # how many `waiting_outside` blocks the loop is in


_current: ContextVar[_WatchedLoop | None] = ContextVar("watched_loop", default=None)


def mark_turn() -> None:
    """Say that the current loop is alive. A loop calls it once a turn."""
    if loop := _current.get():
        loop.marked_at = loop.watchdog.clock()


@contextmanager
def waiting_outside() -> Iterator[None]:
    """Wrap a wait for another process that has no deadline, and nothing more: the loop counts as alive meanwhile."""
    loop = _current.get()
    if loop is None:
        yield
        return
    loop.waits += 1
    try:
        yield
    finally:
        loop.waits -= 1
        loop.marked_at = loop.watchdog.clock()


async def watched_apart(name: str, loop: Awaitable[None]) -> None:
    """Run a loop that another loop starts, watched under a name of its own: the waits of one do not count for the
    other.
    """
    current = _current.get()
    await (current.watchdog.watched(name, loop) if current else loop)


@dataclass(slots=True)
class Watchdog:
    """Watches all loops of a process, and exports how long each has been silent."""

    registry: CollectorRegistry
    clock: Callable[[], float] = time.monotonic
    _loops: dict[str, _WatchedLoop] = field(default_factory=dict)
    _gauge: Gauge = field(init=False)

    def __post_init__(self) -> None:
        self._gauge = Gauge(
            "loop_silent_seconds",
            "Since the loop last marked a turn; 0 while it waits for something outside",
            ["loop"],
            registry=self.registry,
        )

    async def watched(self, name: str, loop: Awaitable[None]) -> None:
        """Run a loop and watch it. A loop that returns has done its work and is forgotten. A loop that raises stays
        watched: its process is about to end, and must not look healthy until it has.
        """
        self._loops[name] = _WatchedLoop(self, self.clock())
        self._gauge.labels(name).set_function(lambda: self.silent_seconds(name))
        _current.set(self._loops[name])
        try:
            await loop
        except Exception as error:
            error.add_note(name)  # the log line about the end of the process names the loop
            raise
        del self._loops[name]

    def silent_seconds(self, name: str) -> float:
        loop = self._loops.get(name)
        return 0.0 if loop is None or loop.waits else self.clock() - loop.marked_at

    def stuck(self) -> dict[str, float]:
        """The loops that have been silent for too long, and for how many seconds."""
        silent = {name: self.silent_seconds(name) for name in self._loops}
        return {name: round(seconds, 1) for name, seconds in silent.items() if seconds > MAX_TURN_SECONDS}


async def next_turn() -> None:
    await asyncio.sleep(0)


class LoopYielder:
    """Call `await yielder.give_way()` after each piece of work: it lets other tasks run once this task has held the
    event loop for `max_hold` seconds.
    """

    def __init__(self, max_hold: float = MAX_HOLD_SECONDS, rest: Callable[[], Awaitable[None]] = next_turn) -> None:
        self._since = time.monotonic()
        self._max_hold = max_hold
        self._rest = rest

    @property
    def held(self) -> float:
        """Seconds since the task last gave way."""
        return time.monotonic() - self._since

    @property
    def is_due(self) -> bool:
        return self.held > self._max_hold

    async def give_way(self) -> None:
        if self.is_due:
            await self._rest()
            self._since = time.monotonic()
