"""What a chaos run needs of any system that it strikes, whatever its stores are: the ledger, the application, the
services, and connections of an operator to see what is in the stores.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aio_pika
import asyncpg

from shared.amqp.connection import close_quietly
from shared.amqp.topology import declare_topology
from shared.contract.names import Names
from tests.chaos.application import Application, declare_queues
from tests.chaos.ledger import Ledger
from tests.chaos.replicas import Replica

CONNECT_SECONDS = 30


@dataclass(slots=True)
class ObservedSystem(ABC):
    ledger: Ledger
    app: Application
    replicas: dict[str, list[Replica]]
    webhook_url: str
    calls_file: Path

    @property
    @abstractmethod
    def database_url(self) -> str:
        """The operator's, of the server that takes writes."""

    @property
    @abstractmethod
    def amqp_url(self) -> str:
        """The operator's, of a node that runs."""

    @property
    def all_replicas(self) -> list[Replica]:
        return [replica for of_service in self.replicas.values() for replica in of_service]

    @asynccontextmanager
    async def database(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        """Connect to Postgres as the operator."""
        connection = await asyncpg.connect(self.database_url, timeout=CONNECT_SECONDS, command_timeout=CONNECT_SECONDS)
        try:
            yield connection
        finally:
            with suppress(OSError, TimeoutError, asyncpg.PostgresError):
                await connection.close(timeout=5)

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[aio_pika.abc.AbstractChannel]:
        """Open a channel as the operator."""
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await aio_pika.connect(self.amqp_url)
        try:
            async with connection.channel() as channel:
                yield channel
        finally:
            await close_quietly(connection)

    async def declare(self) -> None:
        """Declare the topology, as a deployment does, and as an operator does again after something was deleted."""
        async with self.channel() as channel:
            await declare_topology(channel, Names())
            await declare_queues(channel, Names())
