"""Whether a process still does its work, and not only lives: every loop marks its turns, and /healthz is red when one
has marked none for longer than any turn may take. A loop that waits for something outside (a broker that is down, a
queue that is empty) says so, and is well for as long as it takes: a restart would not help it.

Which pulse is whose goes by the task's context, as a log's bound values do: a loop calls `beat` and `resting`, and need
not be handed anything. Outside a watched loop both do nothing.
"""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Gauge

# More than all deadlines within one turn together: statements of 30 s, publishes of 60 s at most, channels of 10 s.
LONGEST_TURN_SECONDS = 300.0


@dataclass(slots=True)
class Pulse:
    pulses: "Pulses"
    beaten_at: float
    rests: int = 0


_current: ContextVar[Pulse | None] = ContextVar("pulse", default=None)


def beat() -> None:
    """Once a turn."""
    if pulse := _current.get():
        pulse.beaten_at = pulse.pulses.clock()


@contextmanager
def resting() -> Iterator[None]:
    """Around a wait for somebody else that has no deadline, and around nothing more."""
    pulse = _current.get()
    if pulse is None:
        yield
        return
    pulse.rests += 1
    try:
        yield
    finally:
        pulse.rests -= 1
        pulse.beaten_at = pulse.pulses.clock()


async def with_a_pulse_of_its_own(name: str, loop: Awaitable[None]) -> None:
    """For a loop that another one starts: its rests are not the other's."""
    pulse = _current.get()
    await (pulse.pulses.watched(name, loop) if pulse else loop)


@dataclass(slots=True)
class Pulses:
    """Of all loops of a process."""

    registry: CollectorRegistry
    clock: Callable[[], float] = time.monotonic
    _pulses: dict[str, Pulse] = field(default_factory=dict)
    _gauge: Gauge = field(init=False)

    def __post_init__(self) -> None:
        self._gauge = Gauge(
            "loop_silent_seconds",
            "Since the loop last marked a turn; 0 while it waits for something outside",
            ["loop"],
            registry=self.registry,
        )

    async def watched(self, name: str, loop: Awaitable[None]) -> None:
        """A loop that returns has done its work. One that raises stays in sight: its process is about to go down, and
        must not look well while it does not.
        """
        self._pulses[name] = Pulse(self, self.clock())
        self._gauge.labels(name).set_function(lambda: self.silent_seconds(name))
        _current.set(self._pulses[name])
        try:
            await loop
        except Exception as error:
            error.add_note(name)  # for the last words of the process
            raise
        del self._pulses[name]

    def silent_seconds(self, name: str) -> float:
        pulse = self._pulses.get(name)
        return 0.0 if pulse is None or pulse.rests else self.clock() - pulse.beaten_at

    def stuck(self) -> dict[str, float]:
        """The loops that have been silent for too long, and for how long."""
        silent = {name: self.silent_seconds(name) for name in self._pulses}
        return {name: round(seconds, 1) for name, seconds in silent.items() if seconds > LONGEST_TURN_SECONDS}
