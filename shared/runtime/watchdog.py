"""The watchdog of a process. Each loop marks its turns, and /healthz is red when a loop has marked none for longer than
any turn may take. A loop that waits for something outside the process (a broker that is down, an empty queue) says so
with `waiting_outside` and counts as well for as long as it waits: a restart would not help it.

Which loop a call is about follows from the task's context, as the bound values of a log do, so functions deep inside a
loop need not be handed anything. Outside a watched loop both functions do nothing.
"""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Gauge

# More than all deadlines within one turn together: statements of 30 s, publishes of 60 s at most, channels of 10 s.
MAX_TURN_SECONDS = 300.0


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
