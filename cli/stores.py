"""The addresses of Postgres and RabbitMQ, and connections to them. The environment has the same variables as for the
services; an address that is not set is taken from the stack of `make up` in the current directory. A command that only
reads needs no more rights than `duebell_reader` has; one that needs more names the right when it opens a store.
"""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import asyncpg
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings

from cli.errors import BadUsage
from cli.store_errors import broker_failure, database_failure
from consumer.settings import ConsumerSettings
from shared.amqp import wire
from shared.amqp.connection import BROKER_ERRORS, connect_to_any
from shared.contract.names import Names
from shared.postgres.database import Database
from shared.postgres.pool import Connection
from shared.runtime.settings import AmqpUrl, PostgresReaderUrl

ENDPOINTS = Path(".stack/endpoints.json")
# A store that is there answers in milliseconds. An operator waits for an answer, and so do scripts.
STORE_CONNECT_TIMEOUT = 4.0
STATEMENT_TIMEOUT = 30.0
DATABASE_ERRORS = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)


class _Environment(BaseSettings):
    database_url: PostgresReaderUrl | None = Field(default=None, repr=False)
    amqp_url: AmqpUrl | None = Field(default=None, repr=False)
    amqp_prefix: str = Field(default="", max_length=60)
    rabbitmq_management_url: str | None = Field(default=None, repr=False)
    # The consumer's limit. Where it is another one, the command line needs to know, too.
    max_payload_bytes: int = Field(default=ConsumerSettings.model_fields["max_payload_bytes"].default, ge=1)


@dataclass(slots=True)
class Address:
    """The address of one store. `from_stack` says that `make up` gave it, which the first use of it says on stderr.
    `reader_url` is that of a user who may only read; without it, `url` serves for reading, too.
    """

    variable: str
    url: str | None = field(repr=False)
    example: str
    reader_url: str | None = field(default=None, repr=False)
    from_stack: bool = False

    def get(self, *, reads_only: bool = False) -> str:
        if self.url is None:
            raise BadUsage(
                f"{self.variable}: is not set, such as {self.example}; or start a stack of your own in this directory "
                "with `make up`"
            )
        if self.from_stack:
            sys.stderr.write(f"{self.variable} is not set: using the stack of `make up`\n")
            self.from_stack = False
        return self.reader_url if reads_only and self.reader_url else self.url


def _address(variable: str, given: str | None, example: str, stack: Mapping[str, str]) -> Address:
    if given is not None:
        return Address(variable, given, example)
    name = variable.lower()
    return Address(variable, stack.get(name), example, stack.get(f"reader_{name}"), from_stack=True)


@dataclass(frozen=True, slots=True)
class Stores:
    database_address: Address
    amqp_address: Address
    names: Names
    max_payload_bytes: int
    management_url: str | None = field(default=None, repr=False)  # of RabbitMQ; None: it is not asked

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
        stack: dict[str, str] = {}
        if (given.database_url is None or given.amqp_url is None) and ENDPOINTS.is_file():
            stack = json.loads(ENDPOINTS.read_text())
        return cls(
            _address("DATABASE_URL", given.database_url, "postgresql://user:password@host:5432/database", stack),
            _address("AMQP_URL", given.amqp_url, "amqp://user:password@host:5672/vhost", stack),
            Names(given.amqp_prefix),
            given.max_payload_bytes,
            given.rabbitmq_management_url or stack.get("management_url"),
        )

    @property
    def amqp_user(self) -> str:
        return unquote(urlsplit(self.amqp_address.get()).username or "guest")

    @asynccontextmanager
    async def database(self, needs: str | None = None) -> AsyncIterator[Connection]:
        """Connect to read, or for what `needs` names: a right beyond reading, such as "to insert into deliveries"."""
        url = self.database_address.get(reads_only=needs is None)
        try:
            database = Database(url, "duebell-cli", connect_timeout=STORE_CONNECT_TIMEOUT)
            connection = await database.connect(command_timeout=STATEMENT_TIMEOUT)
        except DATABASE_ERRORS as error:
            raise database_failure(error, url, needs) from None
        try:
            # Not a setting of the session: behind a pooler it would stay behind in a session that services use. All
            # statements see one moment: a job, its history and its deliveries fit together.
            reading = connection.transaction(readonly=True, isolation="repeatable_read")
            async with nullcontext() if needs else reading:
                yield connection
        except DATABASE_ERRORS as error:
            raise database_failure(error, url, needs) from None
        finally:
            await connection.close(timeout=5)

    @asynccontextmanager
    async def broker(self, needs: str | None = None) -> AsyncIterator[wire.WireConnection]:
        """Connect to look at the numbers of queues, or for what `needs` names: a right beyond it, such as "to read
        scheduler.parked".
        """
        url = self.amqp_address.get(reads_only=needs is None)
        try:
            connection = await connect_to_any(url, "duebell-cli", STORE_CONNECT_TIMEOUT)
        except BROKER_ERRORS as error:
            raise broker_failure(error, url, needs) from None
        try:
            yield connection
        except BROKER_ERRORS as error:
            raise broker_failure(error, url, needs) from None
        finally:
            await connection.close()
