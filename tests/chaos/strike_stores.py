"""How RabbitMQ, Postgres and the network between them and a service are struck. Each function returns when it is over:
the store is back, the alarm lifted, the proxy faithful again.
"""

import asyncio
import os
import signal
from contextlib import suppress

from shared.contract.names import Names
from tests.chaos.application import HEARS, LISTENER
from tests.chaos.faults import Fault
from tests.chaos.proxy import Manner
from tests.chaos.scene import Scene
from tests.chaos.script import Strike

FULL = '{"max-length":1,"overflow":"reject-publish"}'
MANNERS = {
    Fault.STALL: Manner.STALLING,
    Fault.ONE_WAY: Manner.ONE_WAY,
    Fault.DELAY: Manner.DELAYING,
    Fault.DRIP: Manner.DRIPPING,
}
OUR_BACKENDS = "select pid from pg_stat_activity where application_name like 'duebell-%' and pid <> pg_backend_pid()"


async def strike_store(scene: Scene, strike: Strike) -> str:
    """Returns what is worth noting."""
    if strike.fault is Fault.CUT:
        scene.proxies[strike.target].cut()
    elif strike.fault in MANNERS:
        await _misbehave(scene, strike)
    elif strike.fault.name.startswith("BROKER"):
        await _strike_broker(scene, strike)
    else:
        return await _strike_postgres(scene, strike)
    return ""


async def _misbehave(scene: Scene, strike: Strike) -> None:
    proxy = scene.proxies[strike.target]
    proxy.behave(MANNERS[strike.fault])
    await asyncio.sleep(strike.seconds)
    proxy.behave(Manner.FAITHFUL)


async def _strike_broker(scene: Scene, strike: Strike) -> None:
    rabbitmq = scene.rabbitmq
    match strike.fault:
        case Fault.BROKER_KILL:
            await asyncio.to_thread(rabbitmq.kill)
            await asyncio.to_thread(rabbitmq.start)
        case Fault.BROKER_FREEZE:
            rabbitmq.pause()
            await asyncio.sleep(strike.seconds)
            rabbitmq.resume()
        case Fault.BROKER_ALARM:
            await asyncio.to_thread(rabbitmq.ctl, "set_vm_memory_high_watermark", "0.00001")
            await asyncio.sleep(strike.seconds)
            await asyncio.to_thread(rabbitmq.ctl, "set_vm_memory_high_watermark", "0.4")
        case Fault.BROKER_HANG_UP:
            await asyncio.to_thread(rabbitmq.ctl, "close_all_connections", "chaos")
        case Fault.BROKER_UNBIND:
            await _unbind(scene, strike.seconds)
        case _:
            await _fill_the_listener(scene, strike.seconds)


async def _unbind(scene: Scene, seconds: float) -> None:
    """Commands find no queue, and are returned to their sender; events find none, and are kept as unrouted."""
    names = Names()
    async with scene.channel() as channel:
        await (await channel.get_queue(names.inbox)).unbind(names.commands, "#")
        await (await channel.get_queue(LISTENER)).unbind(names.events, HEARS)
    await asyncio.sleep(seconds)
    await scene.declare()


async def _fill_the_listener(scene: Scene, seconds: float) -> None:
    """Nobody reads, and the queue takes no more than one: the broker refuses the rest."""
    scene.app.listening.hang_up()
    try:
        await asyncio.to_thread(scene.rabbitmq.ctl, "set_policy", "full", f"^{LISTENER}$", FULL, "--apply-to", "queues")
        await asyncio.sleep(seconds)
        await asyncio.to_thread(scene.rabbitmq.ctl, "clear_policy", "full")
    finally:
        scene.app.listening.resume()


async def _strike_postgres(scene: Scene, strike: Strike) -> str:
    if strike.fault is Fault.POSTGRES_RESTART:
        await asyncio.to_thread(scene.postgres.restart, "immediate")
        return ""
    async with scene.database() as database:
        if strike.fault is Fault.POSTGRES_TERMINATE:
            ended = await database.fetch(f"select pg_terminate_backend(pid) from ({OUR_BACKENDS}) as ours")
            return f"{len(ended)} backends"
        backends = [row["pid"] for row in await database.fetch(OUR_BACKENDS)]
    _signal(backends, signal.SIGSTOP)
    await asyncio.sleep(strike.seconds)
    _signal(backends, signal.SIGCONT)
    return f"{len(backends)} backends"


def _signal(backends: list[int], number: signal.Signals) -> None:
    for pid in backends:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
