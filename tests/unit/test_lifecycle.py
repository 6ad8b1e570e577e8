"""Loops that must run until the stop: one that ends early is a failure, and ends its process."""

import asyncio
import logging
import subprocess
import sys

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from shared.errors import EndedByItself
from shared.runtime.loops import Stop, Watchdog, cancel_and_wait, first_of, run_until_stop
from shared.runtime.service import run_service
from tests.support.eventually import PATIENCE
from tests.support.services import ROOT


async def test_a_loop_that_returns_before_the_stop_is_a_failure() -> None:
    with pytest.raises(EndedByItself, match="lane"):
        await run_until_stop(asyncio.sleep(0), Stop(), "lane")


async def test_a_loop_that_returns_after_the_stop_is_not() -> None:
    stop = Stop()
    stop.request()
    await run_until_stop(asyncio.sleep(0), stop, "lane")


async def test_a_cancellation_that_no_task_requested_is_a_failure() -> None:
    async def stalled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run_until_stop(stalled(), Stop(), "lane"))
    assert caught.group_contains(EndedByItself)


async def test_a_requested_cancellation_passes_through() -> None:
    task = asyncio.create_task(run_until_stop(asyncio.sleep(60), Stop(), "lane"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_first_failure_is_raised_and_the_others_are_cancelled() -> None:
    slow = asyncio.create_task(asyncio.sleep(60))

    async def fails() -> None:
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        await first_of(slow, fails())
    assert slow.cancelled()


def test_the_last_log_line_names_the_innermost_loop_and_no_task_group() -> None:
    async def dies() -> None:
        raise ValueError("here")

    async def work(_: Stop) -> None:
        watchdog = Watchdog(CollectorRegistry())

        async def outer() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(dies())

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watchdog.watched("lane", outer()))

    level = logging.getLogger("asyncio").level
    try:
        with capture_logs() as lines:
            assert run_service(work, 1.0) == 1
    finally:
        logging.getLogger("asyncio").setLevel(level)
    assert (lines[-1]["event"], lines[-1]["error"]) == ("died", "lane: ValueError: here")


async def test_a_task_that_misses_its_cancellation_is_cancelled_again() -> None:
    async def hard_of_hearing() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(60)

    task = asyncio.create_task(hard_of_hearing())
    await asyncio.sleep(0)
    await cancel_and_wait(task)
    assert task.cancelled()


DIES_BESIDE_ONE_THAT_DOES_NOT_LET_GO = """
import asyncio, contextlib, sys
from shared.runtime import loops, service
from shared.runtime.logs import configure_logs

service.CLEANUP_SECONDS = 0.5

async def ignores_cancellation():
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

async def dies():
    await asyncio.sleep(0.1)
    raise ValueError("here")

async def work(stop):
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ignores_cancellation())
        tasks.create_task(loops.run_until_stop(dies(), stop, "lane"))

configure_logs("test", "info")
sys.exit(service.run_service(work, 1.0))
"""


def test_a_process_whose_loop_dies_exits_though_another_ignores_its_cancellation() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", DIES_BESIDE_ONE_THAT_DOES_NOT_LET_GO],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "ValueError: here" in ended.stderr + ended.stdout
