"""The ceiling of delivery: the HTTP client that delivery uses, alone, with bodies and headers like delivery's."""

import asyncio

from bench.child import arguments, timed
from bench.http_clients import CHOSEN


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

    async with CHOSEN(given["url"], given["connections"]) as call:
        await timed(given["count"], all_of_them)


if __name__ == "__main__":
    asyncio.run(main())
