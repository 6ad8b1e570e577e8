"""The ceiling of delivery: an HTTP client alone, on the same event loop, with bodies and headers like delivery's."""

import asyncio

import uvloop

from bench.child import arguments, timed
from bench.http_clients import CLIENTS


async def main() -> None:
    given = arguments()
    remaining = given["count"]

    async def repeat() -> None:
        nonlocal remaining
        while remaining > 0:
            remaining -= 1
            await call()

    async def all_of_them() -> None:
        await asyncio.gather(*(repeat() for _ in range(given["connections"])))

    async with CLIENTS[given["client"]](given["url"], given["connections"]) as call:
        await timed(given["count"], all_of_them)


if __name__ == "__main__":
    uvloop.run(main())
