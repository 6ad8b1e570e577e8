"""Ledgers for tests of the invariants: a run without a broken promise, of which a test changes one value."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.chaos.faults import Fault
from tests.chaos.ledger import (
    Call,
    Command,
    DelayedMessage,
    DeliveryRow,
    Heard,
    HeardMessage,
    JobRow,
    Kind,
    Ledger,
    Plan,
    Reply,
    Struck,
)
from tests.chaos.script import Strike

NOON = datetime(2030, 6, 1, 12, 0, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def heard(job: str, due: float, fired: float | None = None, **more: object) -> Heard:
    fired_at = at(due + 0.01 if fired is None else fired)
    one = Heard(job, f"key of {job} at {due}", at(due), fired_at, max(at(due), fired_at) + timedelta(seconds=0.01))
    return replace(one, **more)  # type: ignore[arg-type]  # any field


def a_call(job: str, due: float, **more: object) -> Call:
    one = Call(job, f"key of {job} at {due}", at(due), at(due + 0.1), "answers 200", effect=True)
    return replace(one, **more)  # type: ignore[arg-type]


def a_fault(began: float, ended: float, fault: Fault = Fault.KILL, target: str = "producer") -> Struck:
    return Struck(Strike(0.0, fault, target), at(began), at(ended))


def a_good_run() -> Ledger:
    """A one-shot with a webhook, a rule that rings three times, an endless one that is cancelled after two, and one
    that is put off; a fault in the middle, and a duplicate that it explains.
    """
    every = timedelta(seconds=1)
    return Ledger(
        in_flight=1,
        commands=[
            Command("once", Kind.REQUEST, at(0), 1, Plan(at(5)), webhook=True),
            Command("thrice", Kind.REQUEST, at(0), 1, Plan(at(5), every, 3)),
            Command("endless", Kind.REQUEST, at(0), 1, Plan(at(5), every, None)),
            Command("endless", Kind.CANCEL, at(6.5), 0),
            Command("put off", Kind.REQUEST, at(0), 1, Plan(at(5))),
            Command("put off", Kind.REQUEST, at(1), 2, Plan(at(8))),
        ],
        replies=[
            Reply("once", Kind.REQUEST, 1, "accepted", at(0.1)),
            Reply("endless", Kind.CANCEL, 0, "cancelled", at(6.6)),
            Reply("put off", Kind.REQUEST, 2, "rescheduled", at(1.1)),
        ],
        heard=[
            heard("once", 5, webhook=True),
            *(heard("thrice", due) for due in (5, 6, 7)),
            heard("thrice", 6, fired=6.8),
            *(heard("endless", due) for due in (5, 6)),
            heard("put off", 8),
        ],
        delayed=[DelayedMessage("later", at(5), at(0.1)), DelayedMessage("again", at(6), at(0.2))],
        heard_delayed=[
            HeardMessage("later", at(5.1)),
            HeardMessage("again", at(6.1)),
            HeardMessage("again", at(6.6)),
        ],
        calls=[a_call("once", 5, behaviour="answers 500", effect=False), a_call("once", 5, seen_at=at(6))],
        struck=[a_fault(6.1, 6.5)],
        jobs=[
            JobRow("once", "done", 1, 1),
            JobRow("thrice", "done", 1, 3),
            JobRow("endless", "cancelled", 1, 2),
            JobRow("put off", "done", 2, 1),
        ],
        deliveries=[DeliveryRow("once", "key of once at 5", "COMPLETED")],
        drained_at=at(10),
    )
