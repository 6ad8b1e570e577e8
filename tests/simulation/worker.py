"""A worker that stops before everything it does to the world (a statement, a commit, a publish, an ack, a call) and
waits to be told what becomes of it. So whoever drives several of them decides how their steps interleave, and where
each of them loses its connection or its life. Between two stops a worker only thinks.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import asyncpg

from tests.simulation.town import RealConnection, Town

T = TypeVar("T")
# To find out whether a worker that is under way waits for a row lock: asked again and again, so it decides nothing.
LOOK_AGAIN_SECONDS = 0.02


class Fate(Enum):
    OK = "it goes well"
    REFUSED = "the other side says no"
    MIXED = "the other side says no to some of it"
    LOST_BEFORE = "the connection is lost, and it was not done"
    LOST_AFTER = "it was done, and the connection is lost before the answer comes"
    CRASH = "the process dies before it"


class Crashed(BaseException):
    """Nothing in the services may catch it: the process is gone."""


@dataclass(slots=True)
class Worker:
    number: int
    town: Town
    connection: "RealConnection | None" = None
    task: "asyncio.Task[None] | None" = None
    work: str = ""
    at: str = ""  # what it is about to do
    lost_its_locks: bool = False
    dead: bool = False
    _doing: Callable[[], Coroutine[Any, Any, None]] | None = None
    _told: "asyncio.Future[Fate] | None" = None
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_idle(self) -> bool:
        return self.task is None and self._doing is None

    @property
    def waits(self) -> bool:
        """For a row that another one holds."""
        return self.task is not None and not self._arrived.is_set()

    def begin(self, work: str, doing: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """It sets out when it is driven."""
        self.work, self.dead, self.lost_its_locks = work, False, False
        self._doing = doing

    async def drive(self, fates: Sequence[Fate]) -> Sequence[Fate]:
        """One stop for each, as far as it comes. Returns those that are left over."""
        if self._doing is not None:
            self.task, self._doing = asyncio.get_running_loop().create_task(self._doing()), None
        for place, fate in enumerate(fates):
            standing = await self.settle()
            if fate is Fate.CRASH:
                await self.crash()
                return fates[place + 1 :]
            if not standing:
                return fates[place:]
            self._release(fate)
        await self.settle()
        return []

    async def settle(self) -> bool:
        """Whether it stands at a stop. If not, it has ended, or waits for a row that another one holds."""
        while self.task is not None:
            arriving = asyncio.ensure_future(self._arrived.wait())
            await asyncio.wait({self.task, arriving}, timeout=LOOK_AGAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            arriving.cancel()
            if self._arrived.is_set():
                return True
            if self.task.done():
                self._bury()
            elif self.connection and await self.town.waits_for_a_lock(self.connection.get_server_pid()):
                return False
        return False

    async def crash(self) -> None:
        if (task := self.task) is None:
            return
        self.dead = True
        await self.lose_connection()
        if self._told is not None and not self._told.done():
            self._told.set_exception(Crashed())
        await asyncio.wait({task}, timeout=10)
        self._bury()

    async def lose_connection(self) -> None:
        """With everything that was not committed, and every lock."""
        connection, self.connection = self.connection, None
        self.lost_its_locks = True
        if connection is not None:
            await self.town.end_backend(connection.get_server_pid())
            connection.terminate()

    async def stop_before(self, what: str) -> Fate:
        if self.dead:
            raise Crashed
        self.at = what
        self._told = asyncio.get_running_loop().create_future()
        self._arrived.set()
        return await self._told

    def _release(self, fate: Fate) -> None:
        self._arrived.clear()
        if self._told is not None:
            self._told.set_result(fate)

    def _bury(self) -> None:
        task, self.task, self._told = self.task, None, None
        self._arrived.clear()
        error = task.exception() if task else None
        if error is not None and not self.dead:
            raise error


@dataclass(frozen=True, slots=True)
class SteppedPool:
    """Stands where the services expect their pool: one connection, opened again when it was lost."""

    worker: Worker

    @asynccontextmanager
    async def acquire(self, timeout: float) -> AsyncIterator["SteppedConnection"]:
        worker = self.worker
        if worker.dead:
            raise Crashed
        if worker.connection is None:
            async with asyncio.timeout(timeout):
                worker.connection = await worker.town.connect()
        yield SteppedConnection(worker, worker.connection)


@dataclass(frozen=True, slots=True)
class SteppedConnection:
    """A real connection; each statement is a stop."""

    worker: Worker
    real: RealConnection

    async def fetch(self, sql: str, *arguments: object) -> Any:
        return await self._stepping(_title(sql), lambda: self.real.fetch(sql, *arguments))

    async def fetchrow(self, sql: str, *arguments: object) -> Any:
        return await self._stepping(_title(sql), lambda: self.real.fetchrow(sql, *arguments))

    async def fetchval(self, sql: str, *arguments: object) -> Any:
        return await self._stepping(_title(sql), lambda: self.real.fetchval(sql, *arguments))

    async def execute(self, sql: str, *arguments: object) -> Any:
        return await self._stepping(_title(sql), lambda: self.real.execute(sql, *arguments))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        real = self.real.transaction()
        await real.start()
        try:
            yield
        except BaseException:
            if not self.real.is_closed():
                await real.rollback()
            raise
        await self._stepping("commit", real.commit)

    async def _stepping(self, what: str, do: Callable[[], Awaitable[T]]) -> T:
        fate = await self.worker.stop_before(what)
        if fate is Fate.LOST_BEFORE:
            await self._lose()
        try:
            done = await do()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            if self.worker.dead:
                raise Crashed from None
            raise
        if fate is Fate.LOST_AFTER:
            await self._lose()
        return done

    async def _lose(self) -> None:
        await self.worker.lose_connection()
        raise asyncpg.ConnectionDoesNotExistError("the connection was lost")


def _title(sql: str) -> str:
    return " ".join(sql.split())[:40]
