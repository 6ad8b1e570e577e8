"""A worker that stops before each of its effects (a statement, a commit, a publish, an ack, a call) and waits to be
told the effect's fate. So the state machine decides how the steps of several workers interleave, and where each of them
loses its connection or crashes. Between two stops a worker only computes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import asyncpg

from tests.simulation.database import PostgresConnection, SimDatabase

T = TypeVar("T")
# How often to ask Postgres whether a running worker waits for a row lock. The value changes no history.
LOOK_AGAIN_SECONDS = 0.02


class Fate(Enum):
    OK = "it goes well"
    REFUSED = "the other side says no"
    MIXED = "the other side says no to some of it"
    LOST_BEFORE = "the connection is lost, and it was not done"
    LOST_AFTER = "it was done, and the connection is lost before the answer comes"
    CRASH = "the process dies before it"


class ProcessCrashed(BaseException):
    """The simulated process is gone. A BaseException, so that no service catches it."""


@dataclass(slots=True)
class Worker:
    number: int
    database: SimDatabase
    connection: "PostgresConnection | None" = None
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
        """Tell whether the worker waits for a row that another worker has locked."""
        return self.task is not None and not self._arrived.is_set()

    def begin(self, work: str, doing: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Give the worker its work. `drive()` starts it."""
        self.work, self.dead, self.lost_its_locks = work, False, False
        self._doing = doing

    async def drive(self, fates: Sequence[Fate]) -> Sequence[Fate]:
        """Run the worker for one stop per fate, or until it ends or waits. Returns the fates that are left over."""
        if self._doing is not None:
            self.task, self._doing = asyncio.get_running_loop().create_task(self._doing()), None
        for place, fate in enumerate(fates):
            at_stop = await self.wait_until_still()
            if fate is Fate.CRASH:
                await self.crash()
                return fates[place + 1 :]
            if not at_stop:
                return fates[place:]
            self._release(fate)
        await self.wait_until_still()
        return []

    async def wait_until_still(self) -> bool:
        """Wait until the worker is at a stop (True), or has ended or waits for a row that another worker has locked
        (False).
        """
        while self.task is not None:
            arriving = asyncio.ensure_future(self._arrived.wait())
            await asyncio.wait({self.task, arriving}, timeout=LOOK_AGAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            arriving.cancel()
            if self._arrived.is_set():
                return True
            if self.task.done():
                self._clear_task()
            elif self.connection and await self.database.waits_for_a_lock(self.connection.get_server_pid()):
                return False
        return False

    async def crash(self) -> None:
        if (task := self.task) is None:
            return
        self.dead = True
        await self.lose_connection()
        if self._told is not None and not self._told.done():
            self._told.set_exception(ProcessCrashed())
        await asyncio.wait({task}, timeout=10)
        self._clear_task()

    async def lose_connection(self) -> None:
        """Drop the connection, and with it every lock and everything that was not committed."""
        connection, self.connection = self.connection, None
        self.lost_its_locks = True
        if connection is not None:
            await self.database.end_backend(connection.get_server_pid())
            connection.terminate()

    async def stop_before(self, what: str) -> Fate:
        if self.dead:
            raise ProcessCrashed
        self.at = what
        self._told = asyncio.get_running_loop().create_future()
        self._arrived.set()
        return await self._told

    def _release(self, fate: Fate) -> None:
        self._arrived.clear()
        if self._told is not None:
            self._told.set_result(fate)

    def _clear_task(self) -> None:
        task, self.task, self._told = self.task, None, None
        self._arrived.clear()
        error = task.exception() if task else None
        if error is not None and not self.dead:
            raise error


@dataclass(frozen=True, slots=True)
class SteppedPool:
    """The services get it in place of their pool: one connection, opened again after it was lost."""

    worker: Worker

    @asynccontextmanager
    async def acquire(self, timeout: float) -> AsyncIterator["SteppedConnection"]:
        worker = self.worker
        if worker.dead:
            raise ProcessCrashed
        if worker.connection is None:
            async with asyncio.timeout(timeout):
                worker.connection = await worker.database.connect()
        yield SteppedConnection(worker, worker.connection)


@dataclass(frozen=True, slots=True)
class SteppedConnection:
    """A real connection; each statement is a stop."""

    worker: Worker
    real: PostgresConnection

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
                raise ProcessCrashed from None
            raise
        if fate is Fate.LOST_AFTER:
            await self._lose()
        return done

    async def _lose(self) -> None:
        await self.worker.lose_connection()
        raise asyncpg.ConnectionDoesNotExistError("the connection was lost")


def _title(sql: str) -> str:
    return " ".join(sql.split())[:40]
