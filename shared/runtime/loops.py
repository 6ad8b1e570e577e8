"""How the loops of a process run: until the stop, watched, and without holding up each other.

The watchdog: each loop marks its turns, and /healthz reports 503 when a loop has marked none for longer than any turn
may take. A loop that waits for something outside the process (a broker that is down, an empty queue) wraps the wait in
`waiting_outside` and counts as alive for as long as it waits: a restart would not help it. The context of the task
tells which loop calls `mark_turn`, so functions deep inside a loop need no extra argument. Outside a watched loop
`mark_turn` and `waiting_outside` do nothing.
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

# More than the sum of the timeouts within one turn: statements 30 s, publishes at most 60 s, channels 10 s.
MAX_TURN_SECONDS = 300.0
# A task that computes for longer than this lets other tasks run.
MAX_HOLD_SECONDS = 0.005


class Stop:
    """Tells all loops of a process to end; a signal requests it. `failure` is the error that ended a loop, if any."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._failed = asyncio.Event()
        self.failure: Exception | None = None
        self.requested_at = math.inf  # by time.monotonic()

    def request(self) -> None:
        """Tell the loops to take no more work and finish what is in flight."""
        self.requested_at = min(self.requested_at, time.monotonic())
        self._event.set()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()

    def fail(self, error: Exception) -> None:
        """Record that a loop died of `error`. The service then ends without waiting for the grace time."""
        self.failure = self.failure or error
        self._failed.set()

    async def wait_for_failure(self) -> None:
        await self._failed.wait()

    async def sleep(self, seconds: float) -> None:
        """Sleep between two turns, or until the stop. The watchdog counts the loop as alive meanwhile."""
        with waiting_outside():
            await first_of(self._event.wait(), asyncio.sleep(seconds))


async def first_of(*awaitables: Awaitable[Any]) -> None:
    """Wait until one of them is done, and raise what it raised. The others are cancelled and awaited."""
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
    """Run a loop that must not end before the stop. If it returns early, or another part of the process cancels it,
    this raises EndedByItself: a task group would ignore both, and the process would go on without the loop.
    """
    try:
        await _raise_if_early(loop, stop, name)
    except Exception as error:
        stop.fail(error)
        raise


async def _raise_if_early(loop: Awaitable[None], stop: Stop, name: str) -> None:
    try:
        await loop
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        raise EndedByItself(f"{name} was cancelled from outside") from None
    if not stop.requested:
        raise EndedByItself(f"{name} ended before it was told to")


async def cancel_and_wait(task: "asyncio.Task[Any]") -> None:
    """Cancel a task again and again until it is done. In Python 3.11 asyncio.wait_for swallows a cancellation that
    comes at the same moment as its result, and the task would go on.
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
    """Tell the watchdog that the current loop is alive. A loop calls this once a turn."""
    if loop := _current.get():
        loop.marked_at = loop.watchdog.clock()


@contextmanager
def waiting_outside() -> Iterator[None]:
    """Wrap a wait without a timeout, or a pause between turns, and nothing else. The loop counts as alive meanwhile."""
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
    """Run a loop that another loop starts, and watch it under its own name: a wait of one says nothing of the other."""
    current = _current.get()
    await (current.watchdog.watched(name, loop) if current else loop)


@dataclass(slots=True)
class Watchdog:
    """Knows all loops of a process, and exports for each how long ago it marked a turn."""

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
        """Run a loop and watch it. A loop that returns has done its work and is no longer watched. A loop that raises
        stays watched: its process is about to end and must not look healthy until then.
        """
        self._loops[name] = _WatchedLoop(self, self.clock())
        self._gauge.labels(name).set_function(lambda: self.silent_seconds(name))
        _current.set(self._loops[name])
        try:
            await loop
        except Exception as error:
            error.add_note(name)  # the process logs the name of the loop when it ends
            raise
        del self._loops[name]

    def silent_seconds(self, name: str) -> float:
        """Return how long ago the loop marked a turn; 0 while it waits for another process, or once it has ended."""
        loop = self._loops.get(name)
        return 0.0 if loop is None or loop.waits else self.clock() - loop.marked_at

    def stuck(self) -> dict[str, float]:
        """Return the loops that have marked no turn for too long, and for how many seconds."""
        silent = {name: self.silent_seconds(name) for name in self._loops}
        return {name: round(seconds, 1) for name, seconds in silent.items() if seconds > MAX_TURN_SECONDS}


async def next_turn() -> None:
    """Let every other task of the event loop that is ready run once."""
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
        """Return the seconds since the yielder was made, or since `give_way` last let other tasks run."""
        return time.monotonic() - self._since

    @property
    def is_due(self) -> bool:
        return self.held > self._max_hold

    async def give_way(self) -> None:
        if self.is_due:
            await self._rest()
            self._since = time.monotonic()
