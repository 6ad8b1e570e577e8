"""A receiver of webhooks that is never what limits: it looks for the end of each request, answers 200, and knows
nothing else of HTTP. A process of its own, on uvloop.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Answering(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = b""
        self._answer: Callable[[bytes], None] = lambda _: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._answer = cast("asyncio.WriteTransport", transport).write

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (head := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._buffer, 0, head)
            end = head + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < end:
                return
            self._buffer = self._buffer[end:]
            self._answer(ANSWER)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


@asynccontextmanager
async def a_receiver() -> AsyncIterator[str]:
    """Run a receiver, and yield its URL."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", __name__, stdout=asyncio.subprocess.PIPE)
    try:
        if process.stdout is None:
            raise RuntimeError("the receiver has no output")
        port = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()
        yield f"http://127.0.0.1:{port}/hook"
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    uvloop.run(serve())
