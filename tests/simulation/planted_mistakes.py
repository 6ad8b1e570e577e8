"""Mistakes that a change of the services could make. Each is planted alone, and the simulation must find it: otherwise
a simulation without findings would prove nothing.
"""

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from consumer.commands.cancel import cancel_jobs
from consumer.commands.parse import Cancel
from consumer.store import jobs
from producer.decisions.plan import PlannedFiring
from producer.decisions.settle import JobUpdate, settle_all
from shared.amqp import consuming as batches
from shared.amqp.message import PublishResult
from shared.contract.fields import idempotency_key
from tests.simulation import state_machine

Patch = pytest.MonkeyPatch


def _claims(monkeypatch: Patch, text: str, instead: str) -> None:
    for work, lane in state_machine.LANES.items():
        assert text in lane.claim_sql, f"{lane.name} no longer says {text!r}"
        monkeypatch.setitem(state_machine.LANES, work, replace(lane, claim_sql=lane.claim_sql.replace(text, instead)))


def acknowledge_before_the_commit(monkeypatch: Patch) -> None:
    handle = batches._handle

    async def acknowledge_first(batch: Any, handler: Any, inbox: Any, stop: Any) -> None:
        with suppress(ConnectionError):
            await inbox.acknowledge(batch)
            await handle(batch, handler, inbox, stop)

    monkeypatch.setattr(batches, "_handle", acknowledge_first)


def make_a_new_key_for_every_publish(monkeypatch: Patch) -> None:
    # Of one length: a history that is run again meets its keys in the same order.
    numbers = itertools.count()

    def new_key(job_id: str, due_at: str, topic: str, _: str | None = None, __: int = 1) -> str:
        return f"event-{job_id}-{due_at}-{topic}-{next(numbers):09}"

    monkeypatch.setattr("producer.decisions.due_event.idempotency_key", new_key)


def claim_without_locking(monkeypatch: Patch) -> None:
    _claims(monkeypatch, "for no key update skip locked", "")


def wait_for_rows_that_others_hold(monkeypatch: Patch) -> None:
    _claims(monkeypatch, " skip locked", "")


def claim_a_minute_too_soon(monkeypatch: Patch) -> None:
    _claims(monkeypatch, "coalesce($1::timestamptz, now())", "coalesce($1::timestamptz, now() + interval '1 minute')")


def take_unknown_for_confirmed(monkeypatch: Patch) -> None:
    def settle_as_confirmed(firings: Sequence[PlannedFiring], results: Sequence[PublishResult]) -> list[JobUpdate]:
        return settle_all(
            firings, [PublishResult.CONFIRMED if one is PublishResult.UNKNOWN else one for one in results]
        )

    monkeypatch.setattr("producer.job_work.settle_all", settle_as_confirmed)


def leave_the_life_out_of_the_key(monkeypatch: Patch) -> None:
    def key_of_the_id(job_id: str, due_at: str, topic: str, trigger_id: str | None = None, _: int = 1) -> str:
        return idempotency_key(job_id, due_at, topic, trigger_id)

    monkeypatch.setattr("producer.decisions.due_event.idempotency_key", key_of_the_id)


def take_the_same_revision_again(monkeypatch: Patch) -> None:
    assert "excluded.revision > " in jobs.APPLY_REQUESTS
    statement = jobs.APPLY_REQUESTS.replace("excluded.revision > ", "excluded.revision >= ")
    monkeypatch.setattr("consumer.store.jobs.APPLY_REQUESTS", statement)


def cancel_whatever_is_there(monkeypatch: Patch) -> None:
    def cancel_without_revisions(cancels: Sequence[Cancel], *rest: Any) -> Any:
        return cancel_jobs([replace(cancel, revision=None) for cancel in cancels], *rest)

    monkeypatch.setattr("consumer.change_jobs.cancel_jobs", cancel_without_revisions)


# Each with a seed by which the simulation meets it within its first three histories. By any other seed it would find
# the mistake, too, after a hundred histories perhaps: if a change of the simulation makes a test slow, look for one.
PLANTED_MISTAKES: tuple[tuple[Callable[[Patch], None], int], ...] = (
    (acknowledge_before_the_commit, 3),
    (make_a_new_key_for_every_publish, 9),
    (claim_without_locking, 3),
    (wait_for_rows_that_others_hold, 3),
    (claim_a_minute_too_soon, 3),
    (take_unknown_for_confirmed, 44),
    (leave_the_life_out_of_the_key, 3),
    (take_the_same_revision_again, 44),
    (cancel_whatever_is_there, 22),
)
