"""The addresses of Postgres and RabbitMQ, and connections to them. The environment has the same variables as for the
services; where none is set, the command line uses the stack of `make up` in the current directory.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import asyncpg
from aiormq.exceptions import AMQPError
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings

from cli.errors import BadUsage, Failure, Unreachable
from shared.amqp import wire
from shared.contract.names import Names
from shared.postgres.errors import describe
from shared.postgres.pool import Connection
from shared.runtime.settings import AmqpUrl, PostgresUrl

ENDPOINTS = Path(".stack/endpoints.json")
CONNECT_TIMEOUT = 10.0
STATEMENT_TIMEOUT = 30.0
BROKER_ERRORS_OR_CANCELLED = (AMQPError, OSError, TimeoutError, asyncio.CancelledError)


class _Environment(BaseSettings):
    database_url: PostgresUrl | None = Field(default=None, repr=False)
    amqp_url: AmqpUrl | None = Field(default=None, repr=False)
    amqp_prefix: str = Field(default="", max_length=60)


@dataclass(frozen=True, slots=True)
class Stores:
    database_url: str | None = field(repr=False)
    amqp_url: str | None = field(repr=False)
    names: Names

    @classmethod
    def from_environment(cls) -> "Stores":
        try:
            given = _Environment()
        except ValidationError as error:
            # The value is not repeated: it may hold a password.
            problems = (
                f"{str(p['loc'][0]).upper()}: {p['msg'].removeprefix('Value error, ')}"
                for p in error.errors(include_url=False, include_input=False)
            )
            raise BadUsage("\n".join(problems)) from None
        if given.database_url is None and given.amqp_url is None and ENDPOINTS.is_file():
            stack = json.loads(ENDPOINTS.read_text())
            sys.stderr.write("using the stack of `make up`, as DATABASE_URL and AMQP_URL are not set\n")
            return cls(stack["database_url"], stack["amqp_url"], Names(given.amqp_prefix))
        return cls(given.database_url, given.amqp_url, Names(given.amqp_prefix))

    @property
    def amqp_user(self) -> str:
        return unquote(urlsplit(self.amqp_url or "").username or "guest")

    @asynccontextmanager
    async def database(self, *, writes: bool = False) -> AsyncIterator[Connection]:
        if self.database_url is None:
            raise BadUsage("DATABASE_URL: is not set, such as postgresql://user:password@host:5432/database")
        try:
            connection = await asyncpg.connect(
                self.database_url,
                timeout=CONNECT_TIMEOUT,
                command_timeout=STATEMENT_TIMEOUT,
                server_settings={"application_name": "duebell-cli"},
            )
            if not writes:
                # Not by server_settings: the address asks for a session that takes writes, and would find none.
                await connection.execute("set default_transaction_read_only = on")
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise Unreachable(f"cannot reach the database at DATABASE_URL: {describe(error)}") from None
        try:
            yield connection
        except asyncpg.UndefinedTableError:
            raise Failure("the database has no Duebell schema: run python -m shared.migrate") from None
        except TimeoutError:
            raise Unreachable(f"the database did not answer within {STATEMENT_TIMEOUT:.0f} s") from None
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise Unreachable(f"the database says: {describe(error)}") from None
        finally:
            await connection.close(timeout=5)

    @asynccontextmanager
    async def broker(self) -> AsyncIterator[wire.WireConnection]:
        if self.amqp_url is None:
            raise BadUsage("AMQP_URL: is not set, such as amqp://user:password@host:5672/vhost")
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                connection = await wire.connect(self.amqp_url, "duebell-cli")
        except BROKER_ERRORS_OR_CANCELLED as error:
            says = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
            raise Unreachable(f"cannot reach the broker at AMQP_URL: {says}") from None
        try:
            yield connection
        except (AMQPError, OSError) as error:
            raise Unreachable(f"the broker says: {' '.join(str(error).split())}") from None
        finally:
            await connection.close()
