"""Tests that lanes which yield wait for lanes with precedence, and are never stopped by them."""

import asyncio
import time

import pytest

from producer.priority import MAX_PRECEDENCE_WAIT_SECONDS, MAX_YIELDING_CLAIM_ROWS, Precedence
from tests.support.eventually import PATIENCE


async def test_a_lane_that_yields_goes_on_when_the_last_publish_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producer.priority.MAX_PRECEDENCE_WAIT_SECONDS", 3600.0)
    precedence, went_on = Precedence(), asyncio.Event()

    async def yield_once() -> None:
        await precedence.wait_for_due_now()
        went_on.set()

    async with asyncio.TaskGroup() as tasks:
        with precedence.go_first():
            with precedence.go_first():
                tasks.create_task(yield_once())
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not went_on.is_set()
        async with asyncio.timeout(PATIENCE):
            await went_on.wait()


async def test_a_lane_that_yields_goes_on_after_the_longest_wait() -> None:
    precedence = Precedence()
    with precedence.go_first():
        began = time.monotonic()
        async with asyncio.timeout(PATIENCE):
            await precedence.wait_for_due_now()
        assert time.monotonic() - began >= MAX_PRECEDENCE_WAIT_SECONDS / 2


def test_claims_are_small_only_while_due_rows_were_published_recently() -> None:
    now = 1000.0
    precedence = Precedence(clock=lambda: now)
    assert precedence.limit_claim(1000) == 1000
    with precedence.go_first():
        assert precedence.limit_claim(1000) == MAX_YIELDING_CLAIM_ROWS
    now += 0.5
    assert precedence.limit_claim(1000) == MAX_YIELDING_CLAIM_ROWS
    assert precedence.limit_claim(10) == 10
    now += 10
    assert precedence.limit_claim(1000) == 1000
