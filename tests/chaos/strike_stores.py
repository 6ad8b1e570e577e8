"""Strikes at RabbitMQ, at Postgres and at the network between a store and a service. Each function returns when the
fault is over: the store is back, the alarm lifted, the proxy passes everything on again.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress

from shared.contract.names import Names
from tests.chaos.application import HEARS, LISTENER
from tests.chaos.faults import ClusterFault, Fault
from tests.chaos.proxy import ProxyMode
from tests.chaos.script import Strike
from tests.chaos.system import System

FULL = '{"max-length":1,"overflow":"reject-publish"}'
PROXY_MODES: Mapping[Fault | ClusterFault, ProxyMode] = {
    Fault.STALL: ProxyMode.STALLING,
    Fault.ONE_WAY: ProxyMode.ONE_WAY,
    Fault.DELAY: ProxyMode.DELAYING,
    Fault.DRIP: ProxyMode.DRIPPING,
}
SERVICE_BACKENDS = (
    "select pid from pg_stat_activity where application_name like 'duebell-%' and pid <> pg_backend_pid()"
)


async def strike_store(system: System, strike: Strike) -> str:
    """Make the fault happen to the store. Returns a note for the ledger."""
    if strike.fault is Fault.CUT:
        system.proxies[strike.target].cut()
    elif mode := PROXY_MODES.get(strike.fault):
        await _change_proxy_mode(system, strike, mode)
    elif strike.fault.name.startswith("BROKER"):
        await _strike_broker(system, strike)
    else:
        return await _strike_postgres(system, strike)
    return ""


async def _change_proxy_mode(system: System, strike: Strike, mode: ProxyMode) -> None:
    proxy = system.proxies[strike.target]
    proxy.set_mode(mode)
    await asyncio.sleep(strike.seconds)
    proxy.set_mode(ProxyMode.FAITHFUL)


async def _strike_broker(system: System, strike: Strike) -> None:
    rabbitmq = system.rabbitmq
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
        case Fault.BROKER_CLOSE_CONNECTIONS:
            await asyncio.to_thread(rabbitmq.ctl, "close_all_connections", "chaos")
        case Fault.BROKER_UNBIND:
            await _unbind(system, strike.seconds)
        case _:
            await _fill_the_listener(system, strike.seconds)


async def _unbind(system: System, seconds: float) -> None:
    """Delete bindings for a while: commands are returned to their sender, events go to `scheduler.unrouted`."""
    names = Names()
    async with system.channel() as channel:
        await (await channel.get_queue(names.inbox)).unbind(names.commands, "#")
        await (await channel.get_queue(LISTENER)).unbind(names.events, HEARS)
    await asyncio.sleep(seconds)
    await system.declare()


async def _fill_the_listener(system: System, seconds: float) -> None:
    """Stop the listener and limit its queue to one message for a while: the broker refuses the rest."""
    system.app.consuming.disconnect()
    try:
        await asyncio.to_thread(
            system.rabbitmq.ctl, "set_policy", "full", f"^{LISTENER}$", FULL, "--apply-to", "queues"
        )
        await asyncio.sleep(seconds)
        await asyncio.to_thread(system.rabbitmq.ctl, "clear_policy", "full")
    finally:
        system.app.consuming.reconnect()


async def _strike_postgres(system: System, strike: Strike) -> str:
    if strike.fault is Fault.POSTGRES_RESTART:
        await asyncio.to_thread(system.postgres.restart, "immediate")
        return ""
    async with system.database() as database:
        if strike.fault is Fault.POSTGRES_TERMINATE:
            ended = await database.fetch(f"select pg_terminate_backend(pid) from ({SERVICE_BACKENDS}) as backends")
            return f"{len(ended)} backends"
        backends = [row["pid"] for row in await database.fetch(SERVICE_BACKENDS)]
    _signal(backends, signal.SIGSTOP)
    await asyncio.sleep(strike.seconds)
    _signal(backends, signal.SIGCONT)
    return f"{len(backends)} backends"


def _signal(backends: list[int], number: signal.Signals) -> None:
    for pid in backends:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
