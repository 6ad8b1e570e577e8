"""A server that accepts connections and says nothing, as a store does that hangs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass


@dataclass(slots=True)
class Deaf:
    """`connections` counts those that it has accepted."""

    address: str = ""
    connections: int = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Deaf"]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            with suppress(ConnectionError):
                while await reader.read(4096):
                    pass
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield self
