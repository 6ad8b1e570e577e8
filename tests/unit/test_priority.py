"""Patient lanes stand aside for prompt ones, and are never stopped by them."""

import asyncio
import time

import pytest

from producer.priority import MAX_PRECEDENCE_WAIT_SECONDS, MAX_YIELDING_CLAIM_ROWS, Precedence
from tests.support.eventually import PATIENCE


async def test_one_who_stands_aside_goes_on_when_the_last_taker_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producer.priority.MAX_PRECEDENCE_WAIT_SECONDS", 3600.0)
    precedence, went_on = Precedence(), asyncio.Event()

    async def be_patient() -> None:
        await precedence.wait_for_due_now()
        went_on.set()

    async with asyncio.TaskGroup() as tasks:
        with precedence.go_first():
            with precedence.go_first():
                tasks.create_task(be_patient())
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not went_on.is_set()
        async with asyncio.timeout(PATIENCE):
            await went_on.wait()


async def test_one_who_stands_aside_goes_on_in_any_case_after_a_while() -> None:
    precedence = Precedence()
    with precedence.go_first():
        began = time.monotonic()
        async with asyncio.timeout(PATIENCE):
            await precedence.wait_for_due_now()
        assert time.monotonic() - began >= MAX_PRECEDENCE_WAIT_SECONDS / 2


def test_turns_are_short_only_while_somebody_else_is_in_a_hurry() -> None:
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
