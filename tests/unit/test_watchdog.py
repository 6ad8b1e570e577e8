"""The watchdog, with loops that turn, wait and hang, on a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from shared.runtime.loops import MAX_TURN_SECONDS, Watchdog, mark_turn, waiting_outside, watched_apart

TOO_LONG = MAX_TURN_SECONDS + 1


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Loop:
    """A loop that marks a turn when `turn` is set."""

    turn: asyncio.Event = field(default_factory=asyncio.Event)
    rests: bool = False

    async def run(self) -> None:
        while True:
            mark_turn()
            if self.rests:
                with waiting_outside():
                    await self.turn.wait()
            else:
                await self.turn.wait()
            self.turn.clear()


@asynccontextmanager
async def watched(watchdog: Watchdog, loop: Loop, name: str = "loop") -> AsyncIterator[None]:
    task = asyncio.create_task(watchdog.watched(name, loop.run()))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_a_loop_is_stuck_when_its_last_turn_is_too_long_ago() -> None:
    clock, loop = Clock(), Loop()
    watchdog = Watchdog(CollectorRegistry(), clock)
    async with watched(watchdog, loop):
        clock.now = MAX_TURN_SECONDS
        assert watchdog.stuck() == {}
        clock.now = TOO_LONG
        assert watchdog.stuck() == {"loop": TOO_LONG}
        assert watchdog.registry.get_sample_value("loop_silent_seconds", {"loop": "loop"}) == TOO_LONG


async def test_every_turn_begins_the_time_anew() -> None:
    clock, loop = Clock(), Loop()
    watchdog = Watchdog(CollectorRegistry(), clock)
    async with watched(watchdog, loop):
        clock.now = MAX_TURN_SECONDS
        loop.turn.set()
        await asyncio.sleep(0.01)
        clock.now += MAX_TURN_SECONDS
        assert watchdog.stuck() == {}


async def test_a_loop_that_waits_for_others_is_well_and_its_time_begins_when_it_is_woken() -> None:
    clock, loop = Clock(), Loop(rests=True)
    watchdog = Watchdog(CollectorRegistry(), clock)
    async with watched(watchdog, loop):
        clock.now = 1_000_000.0
        assert watchdog.stuck() == {}
        assert watchdog.registry.get_sample_value("loop_silent_seconds", {"loop": "loop"}) == 0
        loop.rests = False
        loop.turn.set()
        await asyncio.sleep(0.01)
        assert watchdog.stuck() == {}
        clock.now += TOO_LONG
        assert watchdog.stuck() == {"loop": TOO_LONG}


async def test_the_rest_of_an_inner_loop_is_not_its_starters() -> None:
    clock, inner = Clock(), Loop(rests=True)
    watchdog = Watchdog(CollectorRegistry(), clock)

    async def outer() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watched_apart("inner", inner.run()))
            await asyncio.Event().wait()

    task = asyncio.create_task(watchdog.watched("outer", outer()))
    await asyncio.sleep(0.01)
    clock.now = TOO_LONG
    assert watchdog.stuck() == {"outer": TOO_LONG}
    task.cancel()
    await asyncio.wait({task})


async def test_a_loop_that_died_stays_in_sight_and_one_that_is_done_does_not() -> None:
    clock = Clock()
    watchdog = Watchdog(CollectorRegistry(), clock)

    async def dies() -> None:
        raise ValueError

    await asyncio.gather(
        watchdog.watched("dead", dies()), watchdog.watched("done", asyncio.sleep(0)), return_exceptions=True
    )
    clock.now = TOO_LONG
    assert watchdog.stuck() == {"dead": TOO_LONG}


async def test_outside_a_watched_loop_there_is_nothing_to_mark() -> None:
    mark_turn()
    with waiting_outside():
        await watched_apart("loop", asyncio.sleep(0))
