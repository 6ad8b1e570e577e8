"""Which work a service would find at this moment: a step without work would waste a place in a history."""

from datetime import timedelta
from enum import Enum
from typing import Any

from producer.store.lanes import DUE_NOW_SECONDS
from tests.simulation.broker import SimBroker
from tests.simulation.ledger import FINAL, Ledger


class Work(Enum):
    CONSUME = "consume"
    FIRE_DUE_NOW = "fire what is due now"
    FIRE_OVERDUE = "fire what is overdue"
    FIRE_RETRY = "fire what waits for another try"
    TAKE_IN = "take in due events"
    DISPATCH = "dispatch"
    ANNOUNCE = "announce"


def available_work(broker: SimBroker, ledger: Ledger) -> list[Work]:
    now = ledger.database.now
    there_is = {
        Work.CONSUME: bool(broker.queues[broker.names.inbox]),
        Work.TAKE_IN: bool(broker.queues[broker.names.deliveries]),
        Work.DISPATCH: any(_is_due(row["next_attempt_at"], ledger) for row in ledger.deliveries.values()),
        Work.ANNOUNCE: any(row["unannounced"] for row in ledger.deliveries.values()),
    }
    pending = [row for row in ledger.jobs.values() if row["status"] == "pending"]
    due = [row["next_run_at"] for row in pending if row["retry_at"] is None and _is_due(row["next_run_at"], ledger)]
    due_now_since = now - timedelta(seconds=DUE_NOW_SECONDS)
    there_is |= {
        Work.FIRE_DUE_NOW: any(at > due_now_since for at in due),
        Work.FIRE_OVERDUE: any(at <= due_now_since for at in due),
        Work.FIRE_RETRY: any(_is_due(row["retry_at"], ledger) for row in pending),
    }
    return [work for work in reversed(Work) if there_is[work]]  # the later a stage, the rarer


def is_at_rest(broker: SimBroker, ledger: Ledger) -> bool:
    rows = [*ledger.jobs.values(), *ledger.deliveries.values()]
    return (
        not any(broker.queues.values())
        and all(row["status"] in FINAL for row in rows)
        and not any(row["unannounced"] for row in ledger.deliveries.values())
    )


def _is_due(at: Any, ledger: Ledger) -> bool:
    return at is not None and at <= ledger.database.now
