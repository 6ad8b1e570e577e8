"""Strikes at the servers of Postgres. Each returns when there is a primary again, with a synchronous standby."""

import asyncio
import os
import signal
from datetime import timedelta

from tests.chaos.cluster.calm import wait_until_calm
from tests.chaos.cluster.forgotten import forgotten_commands
from tests.chaos.cluster.pair import Pair, freeze, kill, session_on, wake
from tests.chaos.cluster.system import ClusterSystem
from tests.chaos.faults import ClusterFault
from tests.chaos.ledger import JobRow, RolledBack, now

# How long it takes an operator, or a program such as Patroni, to decide that the primary is gone.
DECIDE_SECONDS = 5.0
# Longer than a statement of the services may take, shorter than the minute after which Postgres replaces the connection
# between its servers.
SILENT_SECONDS = 40.0
BEHIND_SECONDS = 2.0
OLD_PRIMARY_SECONDS = 8.0
# The commands of so long before the loss are sent again: longer than the standby was behind.
SENT_AGAIN = timedelta(seconds=15)

SERVICE_SESSIONS = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'duebell-%'"
# Each transaction that writes takes one.
NEXT_TRANSACTION = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
FIND_JOBS = "select id, status, revision, sequence from jobs where id = any($1::text[])"


async def strike_pair(system: ClusterSystem, fault: ClusterFault) -> str:
    """Make the fault happen. Returns a note for the ledger."""
    pair = system.pair
    match fault:
        case ClusterFault.PRIMARY_KILLED:
            await _lose_primary(pair)
        case ClusterFault.PRIMARY_FROZEN:
            await _lose_frozen_primary(system)
        case ClusterFault.STANDBY_SILENT:
            await asyncio.to_thread(freeze, pair.standby)
            await asyncio.sleep(SILENT_SECONDS)
            await asyncio.to_thread(wake, pair.standby)
            return f"{SILENT_SECONDS:.0f} s without commits"
        case ClusterFault.STANDBY_SILENT_AND_PROMOTED:
            # What the frozen sender has not sent goes with its server.
            os.kill(await pair.sender(), signal.SIGSTOP)
            await asyncio.sleep(SILENT_SECONDS)
            await _lose_primary(pair)
            return f"after {SILENT_SECONDS:.0f} s without commits"
        case ClusterFault.OLD_PRIMARY_BACK:
            return await _bring_old_primary_back(system)
        case ClusterFault.PRIMARY_KILLED_ASYNC:
            return await _lose_commits(system, 0.0)
        case _:
            return await _lose_commits(system, BEHIND_SECONDS)
    return ""


async def _lose_primary(pair: Pair) -> None:
    await asyncio.to_thread(kill, pair.primary)
    await asyncio.sleep(DECIDE_SECONDS)
    await pair.promote()
    await pair.rebuild()


async def _lose_frozen_primary(system: ClusterSystem) -> None:
    """The old primary stays as it is until the services are on time without it."""
    pair = system.pair
    await asyncio.to_thread(freeze, pair.primary)
    await asyncio.sleep(DECIDE_SECONDS)
    await pair.promote()
    await wait_until_calm(system)
    await asyncio.to_thread(kill, pair.standby)
    await pair.rebuild()


async def _bring_old_primary_back(system: ClusterSystem) -> str:
    """Start the old primary beside the new one, as a server that takes writes, and make the services connect anew."""
    pair = system.pair
    await asyncio.to_thread(kill, pair.primary)
    await asyncio.sleep(DECIDE_SECONDS)
    await pair.promote()
    await wait_until_calm(system)
    old = pair.standby
    await asyncio.to_thread(old.start)
    async with session_on(old) as session:
        await session.execute("alter system set synchronous_standby_names = ''")
        await session.execute("select pg_reload_conf()")
        before = await session.fetchval(NEXT_TRANSACTION)
        async with session_on(pair.primary) as primary:
            await primary.execute(SERVICE_SESSIONS)
        await asyncio.sleep(OLD_PRIMARY_SECONDS / 2)
        await asyncio.to_thread(pair.primary.restart)
        await asyncio.sleep(OLD_PRIMARY_SECONDS / 2)
        written = await session.fetchval(NEXT_TRANSACTION) - before
    if written:
        system.ledger.written_to_old_primary.append(f"{written} transactions")
    await asyncio.to_thread(kill, old)
    await pair.rebuild()
    return f"{written} transactions written to it"


async def _lose_commits(system: ClusterSystem, behind_seconds: float) -> str:
    """Promote an asynchronous standby that has not got the last commits, and send the commands of that time again."""
    pair, ledger = system.pair, system.ledger
    await pair.replicate(synchronously=False)
    since = now()
    if behind_seconds:
        os.kill(await pair.sender(), signal.SIGSTOP)
        await asyncio.sleep(behind_seconds)
    await asyncio.to_thread(kill, pair.primary)
    killed_at = now()
    await asyncio.sleep(DECIDE_SECONDS)
    await pair.promote()
    recent = [reply for reply in ledger.replies if since - SENT_AGAIN <= reply.seen_at <= killed_at]
    async with session_on(pair.primary) as session:
        rows = [JobRow(*row) for row in await session.fetch(FIND_JOBS, [reply.job for reply in recent])]
    forgotten = forgotten_commands(recent, rows)
    ledger.rolled_back.append(RolledBack(since, now(), len(forgotten)))
    sent = await system.app.send_again(since - SENT_AGAIN)
    await pair.rebuild()
    confirmed = sum(reply.seen_at >= since for reply in recent)
    return f"{len(forgotten)} of {confirmed} commands forgotten that were answered meanwhile; {sent} sent again"
