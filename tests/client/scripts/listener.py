"""Listens as its environment says, and writes a line when a handler begins and when it ends. A payload tells the
handler what to do: {"raise": n} fails n times, {"hang": seconds} takes that long.
"""

import asyncio
import logging
import os
import signal
from collections import Counter
from contextlib import AsyncExitStack

from duebell import InMemorySeen, ScheduleDue, Scheduler, Seen

logging.basicConfig(level=logging.INFO)
failed: Counter[str] = Counter()


async def handle(due: ScheduleDue) -> None:
    print(f"begin {due.id} {due.trigger_id or ''}", flush=True)
    wish = due.payload if isinstance(due.payload, dict) else {}
    if failed[due.idempotency_key] < wish.get("raise", 0):
        failed[due.idempotency_key] += 1
        raise RuntimeError(f"failure {failed[due.idempotency_key]} of {due.id}")
    await asyncio.sleep(wish.get("hang", 0))
    if "sql" in wish:
        from duebell.seen_postgres import PostgresSeen  # noqa: PLC0415 - asyncpg is not there for the others

        await PostgresSeen.connection().execute(wish["sql"])
    print(f"end {due.id}", flush=True)


async def the_store(stack: AsyncExitStack) -> Seen:
    if url := os.environ.get("DATABASE_URL"):
        import asyncpg  # noqa: PLC0415
        from duebell.seen_postgres import PostgresSeen  # noqa: PLC0415

        seen = PostgresSeen(await stack.enter_async_context(asyncpg.create_pool(url, min_size=1, max_size=4)))
        await seen.prepare()
        return seen
    return InMemorySeen()


async def main() -> None:
    async with AsyncExitStack() as stack:
        seen = await the_store(stack)
        duebell = await stack.enter_async_context(Scheduler(os.environ["AMQP_URL"], os.environ["AMQP_PREFIX"]))
        listening = duebell.listening(
            os.environ.get("TOPIC", "#"),
            handle,
            queue=os.environ["QUEUE"],
            seen=seen,
            prefetch=int(os.environ.get("PREFETCH", "4")),
            attempts=3,
            retry_pause=0.05,
        )
        async with listening:
            print("listening", flush=True)
            await stopped()
    print("stopped", flush=True)


async def stopped() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    await stop.wait()


asyncio.run(main())
