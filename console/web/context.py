"""What the pages share: the parts of the process, and the visitor of a request."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from starlette.requests import Request

from console.access.attempts import AttemptLimit
from console.access.sessions import SessionKey
from console.access.users import User
from console.metrics import Metrics
from console.settings import ConsoleSettings
from console.web.cached import Cached
from shared.contract.names import Names
from shared.postgres.pool import Connection, Pool
from shared.runtime.loops import Stop

if TYPE_CHECKING:
    from console.commands import CommandSender
    from console.kept import KeptMessages
    from console.web.rendering import Renderer

# A page reads for no longer than this in all.
READ_TIMEOUT = 8.0
# Each statement walks an index from where its page begins. Postgres' own choice would now and then be a plan that reads
# all rows first: for few rows, or when it makes one plan for all parameters because a session has asked often.
PLAN_BY_INDEXES = """
set local plan_cache_mode = force_custom_plan; set local enable_seqscan = off; set local enable_bitmapscan = off;
set local enable_hashjoin = off; set local enable_mergejoin = off
"""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The user of a request, and the session, if the user logged in with a password."""

    user: User
    session_id: str
    form_token: str
    has_session: bool


@dataclass(frozen=True, slots=True)
class Console:
    settings: ConsoleSettings
    users: Mapping[str, User]
    session_key: SessionKey
    pool: Pool
    names: Names
    commands: "CommandSender"
    kept: "KeptMessages"
    renderer: "Renderer"
    metrics: Metrics
    stop: Stop
    attempts: AttemptLimit = field(default_factory=AttemptLimit)
    open_streams: set[object] = field(default_factory=set)
    # Numbers of the whole installation, which every reader shares: see console.pages.now.
    quick: Cached[dict[str, Any]] = field(default_factory=lambda: Cached(1.5))
    slow: Cached[dict[str, Any]] = field(default_factory=lambda: Cached(10.0))
    charts: Cached[dict[str, Any]] = field(default_factory=lambda: Cached(10.0))

    @property
    def session_lifetime(self) -> timedelta:
        return timedelta(hours=self.settings.console_session_hours)

    @asynccontextmanager
    async def reading(self, timeout: float | None = None) -> AsyncIterator[Connection]:
        """Open a transaction that cannot write, whatever the rights of the database's user are. All of its statements
        see one moment: a job, its history and its deliveries fit together. It is ended after the timeout, or after
        READ_TIMEOUT.
        """
        async with (
            asyncio.timeout(READ_TIMEOUT if timeout is None else timeout),
            self.pool.acquire() as connection,
            connection.transaction(readonly=True, isolation="repeatable_read"),
        ):
            await connection.execute(PLAN_BY_INDEXES)
            yield connection


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a visitor, with what its page needs to know of it."""

    request: Request
    console: Console
    visitor: Visitor
    zone: ZoneInfo
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def user(self) -> User:
        return self.visitor.user

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params
