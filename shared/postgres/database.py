"""Opens sessions in Postgres: on the first of several hosts that takes them, with the settings that Duebell relies on,
also behind PgBouncer in transaction mode.

Settings are start-up parameters of the session. PgBouncer refuses those, or drops them if it is told to, because its
clients get another session of the server for each transaction. So behind a pooler the settings have to be those of the
role (`alter role … set …`, as in deploy/roles/postgres.sql), which costs no round trip. What a session really has is
looked up once for each connection: a commit that does not wait for the disk would break the promise that nothing is
lost.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias
from weakref import WeakSet

import asyncpg

from shared.errors import UnsuitableSession
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.runtime.addresses import parse_address

CONNECT_TIMEOUT = 10.0
# How long each of several hosts may take at most: one that accepts a connection and then is silent must leave time for
# the others.
HOST_TIMEOUT = 3.0

STATEMENTS_ARE_SHARED = (
    "the pooler mixes up the prepared statements of its clients: set max_prepared_statements in pgbouncer.ini, as is "
    "the default since PgBouncer 1.24"
)

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# `$1` is the name of the statement itself: a pooler that keeps the prepared statements of its clients apart gives them
# names of its own. `$3` is the process id that the client was told: a pooler tells one of its own making.
LOOK_UP_SESSION = """
select pg_backend_pid() <> $3 as is_pooled, current_user as role,
       exists (select from pg_prepared_statements where name = $1) as names_are_kept,
       case when pg_backend_pid() <> $3
            then array(select array[name, setting] from pg_settings where name = any($2::text[]))
            else '{}' end as settings
"""

# Each promotion of a standby begins a new timeline. It is in the names of the log's files.
FIND_TIMELINE = """
select system_identifier::text as system,
       ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as number
  from pg_control_system()
 where not pg_is_in_recovery()
"""


class Database:
    """The database at DATABASE_URL: its hosts, which of them was used last, and the settings of its sessions."""

    def __init__(
        self,
        url: str,
        application: str,
        settings: Mapping[str, str] | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        address = parse_address(url)
        self._urls = [str(address.with_host(host)) for host in address.hosts]
        self._hosts = address.hosts
        self._first = 0  # the host that was used last
        self._sessions: WeakSet[Session] = WeakSet()  # on that host
        self._timelines: dict[
            str, int
        ] = {}  # the newest that a session was opened on, by the id of the database system
        self._application = application
        self._settings = dict(settings or {})
        self._settings_refused = False
        self._connect_timeout = connect_timeout
        self._host_timeout = min(HOST_TIMEOUT, 0.9 * connect_timeout / len(self._hosts))
        # Whether a pooler was found between this process and Postgres: LISTEN needs a session of its own.
        self.is_pooled = False

    async def connect(self, **options: Any) -> Session:  # noqa: ANN401 - the options of asyncpg.connect
        """Open a session on the first host that takes it. Begin with the one that was used last."""
        if len(self._hosts) == 1:
            return await self._connect_to(0, self._connect_timeout, options)
        problems = []
        for step in range(len(self._hosts)):
            number = (self._first + step) % len(self._hosts)
            try:
                session = await self._connect_to(number, self._host_timeout, options)
            except RETRYABLE_ERRORS as error:
                problems.append(f"{self._hosts[number]}: {describe(error)}")
            else:
                if number != self._first:
                    self._leave_host()
                    self._first = number
                self._sessions.add(session)
                return session
        raise ConnectionError("; ".join(problems))

    def _leave_host(self) -> None:
        """End the sessions on the host that was used last. It may be silent: each statement would wait for its timeout.
        Or it may be a primary no more, and not know it.
        """
        for session in self._sessions:
            session.terminate()
        self._sessions.clear()

    async def connect_for_pool(self, *_: object, **options: Any) -> Session:  # noqa: ANN401
        """Open a session for asyncpg's pool, which passes the address, too."""
        return await self.connect(**options)

    async def _connect_to(self, number: int, timeout: float, options: Mapping[str, Any]) -> Session:
        try:
            async with asyncio.timeout(timeout):
                session = await self._open(self._urls[number], timeout, options)
                try:
                    await self._check(session)
                    if len(self._hosts) > 1:
                        await self._refuse_old_primary(session)
                except BaseException:
                    session.terminate()
                    raise
                return session
        except (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError):
            raise UnsuitableSession(STATEMENTS_ARE_SHARED) from None

    async def _open(self, url: str, timeout: float, options: Mapping[str, Any]) -> Session:
        if not self._settings_refused:
            try:
                return await self._open_with(url, timeout, options, self._settings)
            except asyncpg.ProtocolViolationError as error:
                if "unsupported startup parameter" not in str(error):
                    raise
                self._settings_refused = True
        return await self._open_with(url, timeout, options, {})

    async def _open_with(
        self, url: str, timeout: float, options: Mapping[str, Any], settings: Mapping[str, str]
    ) -> Session:
        named = {"application_name": self._application, **settings}
        return await asyncpg.connect(url, timeout=timeout, server_settings=named, **options)

    async def _check(self, session: Session) -> None:
        """Find out whether there is a pooler, and whether its sessions are suitable. Raises UnsuitableSession."""
        async with session.transaction():
            statement = await session.prepare(LOOK_UP_SESSION)
            asked = (statement.get_name(), list(self._settings), session.get_server_pid())
            found = await statement.fetchrow(*asked)
        self.is_pooled = found is not None and found["is_pooled"]
        if found is None or not self.is_pooled:
            return
        if found["names_are_kept"]:
            raise UnsuitableSession(STATEMENTS_ARE_SHARED)
        have = dict(found["settings"])
        if missing := [f"{name} = '{value}'" for name, value in self._settings.items() if have.get(name) != value]:
            commands = "; ".join(f"alter role {found['role']} set {setting}" for setting in missing)
            raise UnsuitableSession(f"behind a pooler the settings have to be those of the role: {commands}")

    async def _refuse_old_primary(self, session: Session) -> None:
        """Raise ConnectionError if the server was the primary until a standby took its place, and still takes writes:
        what is written to it is lost. A process that was started since then cannot know.
        """
        try:
            found = await session.fetchrow(FIND_TIMELINE)
        except asyncpg.PostgresError:  # some managed services have no such function
            return
        if found is None:
            return
        newest = self._timelines.setdefault(found["system"], found["number"])
        if found["number"] < newest:
            raise ConnectionError(
                f"an old primary: it is on timeline {found['number']}, and this process has used a server on timeline "
                f"{newest}. Stop that server, or start this process again if it is the right one"
            )
        self._timelines[found["system"]] = found["number"]
