"""Two servers of Postgres, a primary and a streaming standby, and what an operator does with them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import asyncpg

from stack import processes
from stack.directory import LOGS
from stack.ports import LOOPBACK
from stack.postgres import Postgres

SECONDS = 60.0
SETTINGS = {"wal_keep_size": "1GB"}
# The name by which a standby presents itself to its primary.
STANDBY = "walreceiver"
STREAMING = "select sync_state from pg_stat_replication where application_name = $1 and state = 'streaming'"
SENDER = "select pid from pg_stat_replication where application_name = $1"


class Pair:
    """The servers. `primary` and `standby` change places with each failover."""

    def __init__(self, primary: Postgres, standby: Postgres) -> None:
        self.primary = primary
        self.standby = standby
        self._hosts = ",".join(f"{LOOPBACK}:{server.port}" for server in (primary, standby))

    def url_of(self, role: str) -> str:
        """The address with both hosts."""
        one = self.primary.url_of(role)
        return one.replace(f"{LOOPBACK}:{self.primary.port}", self._hosts)

    async def replicate(self, *, synchronously: bool) -> None:
        """Make the primary wait for its standby at each commit, or not. Returns when the standby has caught up."""
        await _set(self.primary, "synchronous_standby_names", STANDBY if synchronously else "")
        wanted = "sync" if synchronously else "async"
        async with asyncio.timeout(SECONDS), session_on(self.primary) as session:
            while await session.fetchval(STREAMING, STANDBY) != wanted:
                await session.execute("select pg_sleep(0.1)")

    async def sender(self) -> int:
        """The process of the primary that sends to the standby."""
        async with session_on(self.primary) as session:
            pid: int = await session.fetchval(SENDER, STANDBY)
            return pid

    async def promote(self) -> None:
        """Make the standby the primary, whatever the old one does. It waits for no standby of its own."""
        await _set(self.standby, "synchronous_standby_names", "")
        await asyncio.to_thread(self.standby.promote)
        self.primary, self.standby = self.standby, self.primary

    async def rebuild(self) -> None:
        """Make the old primary a synchronous standby of the new one."""
        await asyncio.to_thread(self.standby.follow, self.primary)
        await self.replicate(synchronously=True)


@asynccontextmanager
async def session_on(server: Postgres) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """Connect to this very server as the operator."""
    session = await asyncpg.connect(server.url, timeout=SECONDS, command_timeout=SECONDS)
    try:
        yield session
    finally:
        with suppress(OSError, TimeoutError, asyncpg.PostgresError):
            await session.close(timeout=5)


async def _set(server: Postgres, name: str, value: str) -> None:
    async with session_on(server) as session:
        await session.execute(f"alter system set {name} = '{value}'")
        await session.execute("select pg_reload_conf()")


@contextmanager
def running_pair(directory: Path) -> Iterator[Pair]:
    logs = directory / LOGS
    with (
        Postgres(directory / "one", logs=logs / "one", fsync=False, settings=SETTINGS) as one,
        Postgres(directory / "two", logs=logs / "two", fsync=False, settings=SETTINGS, standby_of=one) as two,
    ):
        yield Pair(one, two)


def freeze(server: Postgres) -> None:
    """Stop all processes of the server: it accepts connections, as the kernel does that, and answers nothing."""
    for pid in _processes_of(server):
        _signal(pid, signal.SIGSTOP)
    for pid in _processes_of(server):
        processes.wait_until_frozen(pid)


def wake(server: Postgres) -> None:
    for pid in reversed(_processes_of(server)):
        _signal(pid, signal.SIGCONT)


def kill(server: Postgres) -> None:
    """End all processes of the server at once, as a loss of its machine does: no connection is closed in order."""
    for pid in _processes_of(server):
        _signal(pid, signal.SIGKILL)
    server.stop("immediate")


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _processes_of(server: Postgres) -> list[int]:
    """The postmaster, which is the first, and its children."""
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == server.pid:
                children.append(int(stat.parent.name))
    return [server.pid, *children]
