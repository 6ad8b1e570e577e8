"""When the announcer looks at its table: when it is woken, again while batches are full, and once after a stop."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from delivery.metrics import Metrics
from delivery.results.announcer import Announcer
from shared.runtime.loops import Stop

UNUSED: Any = None


@dataclass(slots=True)
class ScriptedAnnouncer(Announcer):
    """Each look at the table ends as the script says, and then as one at an empty table."""

    script: list[tuple[bool, bool]] = field(default_factory=list)
    looks: int = 0

    async def announce_once(self) -> tuple[bool, bool]:
        await asyncio.sleep(0)
        self.looks += 1
        return self.script.pop(0) if self.script else (False, False)


def an_announcer(*script: tuple[bool, bool]) -> ScriptedAnnouncer:
    return ScriptedAnnouncer(UNUSED, UNUSED, UNUSED, Metrics(CollectorRegistry()), 1.0, script=list(script))


async def turn_the_loop() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_full_batches_follow_one_another_and_a_wake_up_leads_to_a_look() -> None:
    announcer, stop = an_announcer((True, False), (True, False), (False, False)), Stop()
    running = asyncio.create_task(announcer.run(stop))
    await turn_the_loop()
    assert announcer.looks == 3
    announcer.wake()
    await turn_the_loop()
    assert announcer.looks == 4
    stop.request()
    await asyncio.wait_for(running, 5)
    assert announcer.looks == 5, "once more, for deliveries that ended last"


async def test_a_stop_ends_the_announcer_although_batches_are_full() -> None:
    announcer, stop = an_announcer(*[(True, False)] * 1000), Stop()
    running = asyncio.create_task(announcer.run(stop))
    await turn_the_loop()
    before = announcer.looks
    stop.request()
    await asyncio.wait_for(running, 5)
    assert announcer.looks <= before + 2, "the batch under way, and the last one"


async def test_a_broker_that_gives_no_verdict_is_not_asked_again_at_once() -> None:
    announcer, stop = an_announcer((True, True)), Stop()
    running = asyncio.create_task(announcer.run(stop))
    announcer.wake()
    await turn_the_loop()
    assert announcer.looks == 1
    stop.request()
    await asyncio.wait_for(running, 5)
