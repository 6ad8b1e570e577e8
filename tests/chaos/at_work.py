"""Starts what a run consists of besides its stores: the receiver of webhooks, the application, the services; and ends
them when the block ends.
"""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from stack.directory import LOGS, RECORDS
from stack.ports import LOOPBACK, free_port
from stack.processes import spawn
from stack.services import PROJECT
from tests.chaos import receiver
from tests.chaos.observed import ObservedSystem
from tests.chaos.replicas import watch


def remove_old_logs(directory: Path) -> None:
    """Remove the logs of the run before. They outlive a run, so that they can be read."""
    shutil.rmtree(directory / LOGS, ignore_errors=True)


@asynccontextmanager
async def at_work(system: ObservedSystem) -> AsyncIterator[None]:
    """Keep the application connected and the services running, until the block ends."""
    app = system.app
    tasks = [asyncio.create_task(connection.run()) for connection in (app.publishing, app.consuming)]
    try:
        for replica in system.all_replicas:
            replica.start()
        tasks.append(asyncio.create_task(watch(system.all_replicas, system.ledger)))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for replica in system.all_replicas:
            await replica.kill()


@contextmanager
def running_receiver(directory: Path, seed: int) -> Iterator[tuple[str, Path]]:
    """Run the receiver. Yields its URL, and the file with the calls that it got."""
    file, port, logs = directory / "calls.jsonl", free_port(), directory / LOGS
    logs.mkdir(parents=True, exist_ok=True)
    child = spawn(
        "receiver",
        [sys.executable, "-m", "tests.chaos.receiver"],
        records=directory / RECORDS,
        log=logs / "receiver.log",
        env={receiver.SEED: str(seed), receiver.PORT: str(port), receiver.FILE: str(file)},
        cwd=PROJECT,
    )
    try:
        yield f"http://{LOOPBACK}:{port}/chaos", file
    finally:
        child.stop()
