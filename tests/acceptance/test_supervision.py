"""A loop that dies takes its process with it, and says why; a loop that hangs turns /healthz red; a store that is away
does neither.
"""

import asyncio
import re
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from stack.ports import free_port
from stack.services import SERVICES
from tests.support.application import Application
from tests.support.builders import a_request
from tests.support.due_events import a_due, publish_due
from tests.support.eventually import PATIENCE, eventually
from tests.support.metrics import Metrics
from tests.support.receiver import a_receiver
from tests.support.services import ServiceProcess, service_process
from tests.support.stores import Site, Stores

# Every loop of every service: the step that it turns on, and what it is called.
LOOPS = [
    ("consumer", "consumer.handler:BatchHandler.store", "intake"),
    ("producer", "producer.firing:Firer.fire_once", "lane due_now"),
    ("producer", "producer.wake_listener:WakeListener._listen", "listener"),
    ("producer", "producer.sampling:Sampler.sample_once", "sampler"),
    ("producer", "shared.postgres.retention:Retention.retire_once", "retention of jobs"),
    ("delivery", "delivery.intake:DueHandler.store", "intake"),
    ("delivery", "delivery.dispatch.claimer:Claimer.claim_once", "dispatcher"),
    ("delivery", "delivery.results.recorder:Recorder._write", "recorder"),
    ("delivery", "delivery.results.announcer:Announcer.announce_once", "announcer"),
]
# And what has no turns: it waits for its connection to be lost.
KEEPER = ("consumer", "shared.amqp.connection:Broker._keep_connected", "the service")


def service_with_error(
    service: str, where: Site | dict[str, str], directory: Path, **settings: str
) -> AbstractContextManager[ServiceProcess]:
    environment = where.environment_of(service) if isinstance(where, Site) else where
    wanted = {
        "SERVICE": service,
        "TURN_SECONDS": "3",
        "WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
        "RETRY_BASE_SECONDS": "1",
    }
    return service_process("tests.support.service_with_error", {**environment, **wanted}, directory, **settings)


async def give_it_work(app: Application, url: str) -> None:
    await app.send(a_request(id="tea"))
    await publish_due(app, a_due("coffee", url))


async def healthz(port: int) -> tuple[int, dict[str, Any]]:
    timeout = aiohttp.ClientTimeout(PATIENCE)
    async with aiohttp.ClientSession(timeout=timeout) as client:
        try:
            async with client.get(f"http://127.0.0.1:{port}/healthz") as answer:
                return answer.status, await answer.json()
        except aiohttp.ClientConnectionError:
            return 0, {}


@pytest.mark.parametrize("loop", [*LOOPS, KEEPER], ids=lambda loop: str(loop[1]).rpartition(":")[2])
async def test_a_loop_that_dies_ends_its_process_with_a_clear_log_line(
    site: Site, app: Application, tmp_path: Path, loop: tuple[str, str, str]
) -> None:
    service, step, name = loop
    async with a_receiver() as receiver:
        await give_it_work(app, receiver.url)
        with service_with_error(service, site, tmp_path, STEP=step, HOW="raises") as process:
            assert await asyncio.to_thread(process.process.wait, PATIENCE) == 1
    last = process.lines()[-1]
    assert (last["event"], last["level"]) == ("died", "error")
    # Of several that take the same step, whichever came first.
    kind = name.partition(" ")[0]
    assert re.search(rf"\b{kind}\b[a-z_ ]*: InjectedError: raised on purpose", last["error"])


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: str(loop[1]).rpartition(":")[2])
async def test_a_loop_that_hangs_turns_healthz_red(
    site: Site, app: Application, tmp_path: Path, loop: tuple[str, str, str]
) -> None:
    (service, step, name), port = loop, free_port()
    async with a_receiver() as receiver:
        await give_it_work(app, receiver.url)
        with service_with_error(service, site, tmp_path, STEP=step, HOW="hangs", METRICS_PORT=str(port)):

            async def red() -> bool:
                status, says = await healthz(port)
                assert status == 503, f"{status} {says}"
                assert name in says["silent_seconds"]
                return True

            await eventually(red, within=60)


@pytest.mark.own_stores
async def test_a_broker_that_is_down_for_long_leaves_healthz_green(stores: Stores, site: Site, tmp_path: Path) -> None:
    """And so does a queue without messages: a restart of the process would help in neither case."""
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    ports = {service: free_port() for service in SERVICES}
    with ExitStack() as running:
        # By the operator's users: all that belongs to a site goes with the broker's memory, and they may declare it
        # anew.
        processes = [
            running.enter_context(service_process(service, site.environment, tmp_path, METRICS_PORT=str(port)))
            for service, port in ports.items()
        ]
        for is_up in (True, False, True):
            await eventually(lambda is_up=is_up: all_say_the_broker_is(is_up, ports), within=60)  # type: ignore[misc]
            for port in ports.values():
                await every_loop_turns(port)
            if is_up and stores.rabbitmq.alive():
                await asyncio.to_thread(stores.rabbitmq.kill)
            elif not is_up:
                await asyncio.to_thread(stores.rabbitmq.start)
        assert all(process.is_running for process in processes)


async def all_say_the_broker_is(up: bool, ports: dict[str, int]) -> bool:
    for service, port in ports.items():
        said = await Metrics(port).value("dependency_up", dependency="broker")
        assert said == float(up), service
    return True


async def every_loop_turns(port: int) -> None:
    """No loop's silence only ever grows: it ends, or the loop rests and is not expected to say anything. So however
    long this lasts, /healthz stays green."""
    longest = await silences(port)
    assert longest

    async def look() -> bool:
        for loop, seconds in (await silences(port)).items():
            if seconds == 0 or seconds < longest.get(loop, 0.0):
                longest.pop(loop, None)
            elif loop in longest:
                longest[loop] = seconds
        assert not longest, f"silent all the time: {longest}"
        return True

    await eventually(look)
    assert (await healthz(port))[0] == 200


async def silences(port: int) -> dict[str, float]:
    values = await Metrics(port).values()
    return {dict(labels)["loop"]: value for (name, labels), value in values.items() if name == "loop_silent_seconds"}
