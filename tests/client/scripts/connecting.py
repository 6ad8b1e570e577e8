"""Connects to the URL that is its standard argument, and reports what the client says and after how long."""

import asyncio
import json
import sys
import time
from collections.abc import Callable

from duebell import DuebellError, Scheduler
from duebell.sync import Scheduler as Blocking


async def connect(url: str, timeout: float) -> None:
    async with Scheduler(url, timeout=timeout):
        pass


def connect_blocking(url: str, timeout: float) -> None:
    with Blocking(url, timeout=timeout):
        pass


def report(way: Callable[[], None]) -> None:
    began = time.monotonic()
    try:
        way()
    except DuebellError as error:
        seconds = time.monotonic() - began
        print(json.dumps({"error": type(error).__name__, "text": str(error), "seconds": seconds}))


url, timeout = sys.argv[1], float(sys.argv[2])
report(lambda: asyncio.run(connect(url, timeout)))
report(lambda: connect_blocking(url, timeout))
