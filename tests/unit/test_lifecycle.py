"""Loops that should run for life: whoever ends early is found out."""

import asyncio

import pytest

from shared.lifecycle import EndedByItself, Stop, first_of, for_life


async def test_a_loop_that_returns_before_the_stop_is_a_failure() -> None:
    with pytest.raises(EndedByItself, match="lane"):
        await for_life(asyncio.sleep(0), Stop(), "lane")


async def test_a_loop_that_returns_after_the_stop_is_not() -> None:
    stop = Stop()
    stop.request()
    await for_life(asyncio.sleep(0), stop, "lane")


async def test_a_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    async def stalled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(for_life(stalled(), Stop(), "lane"))
    assert caught.group_contains(EndedByItself)


async def test_a_cancellation_that_somebody_asked_for_is_let_through() -> None:
    task = asyncio.create_task(for_life(asyncio.sleep(60), Stop(), "lane"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_first_to_fail_is_heard_and_the_others_are_ended() -> None:
    slow = asyncio.create_task(asyncio.sleep(60))

    async def fails() -> None:
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        await first_of(slow, fails())
    assert slow.cancelled()
