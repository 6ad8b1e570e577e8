"""The invariants hold for a good run, and each kind of broken promise is found."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.faults import Fault
from tests.chaos.invariants import Invariant, check
from tests.chaos.ledger import DeliveryRow, Ended, HeardMessage, JobRow, Kind, Ledger, Reply
from tests.chaos.sample_ledgers import a_call, a_fault, a_good_run, at, heard

Change = Callable[[Ledger], None]


def _without_row(job: str) -> Change:
    return lambda ledger: ledger.jobs.remove(next(row for row in ledger.jobs if row.id == job))


def _row(job: str, **changes: object) -> Change:
    def change(ledger: Ledger) -> None:
        ledger.jobs = [replace(row, **changes) if row.id == job else row for row in ledger.jobs]  # type: ignore[arg-type]

    return change


def _unheard(job: str, due: float) -> Change:
    def change(ledger: Ledger) -> None:
        ledger.heard = [one for one in ledger.heard if (one.job, one.due_at) != (job, at(due))]

    return change


def _also(name: str, *entries: object) -> Change:
    return lambda ledger: getattr(ledger, name).extend(entries)


def _set(name: str, value: object) -> Change:
    return lambda ledger: setattr(ledger, name, value)


BROKEN: dict[str, tuple[Change, Invariant]] = {
    "a request without a row": (_without_row("once"), Invariant.COMMANDS_KEPT),
    "a cancel without a row": (_without_row("endless"), Invariant.COMMANDS_KEPT),
    "cancelled without a command": (_row("thrice", status="cancelled"), Invariant.COMMANDS_KEPT),
    "a reschedule forgotten": (_row("put off", revision=1), Invariant.COMMANDS_KEPT),
    "a cancel that was acknowledged and forgotten": (_row("endless", status="done"), Invariant.COMMANDS_KEPT),
    "a one-shot that was never heard": (_unheard("put off", 8), Invariant.ALL_PUBLISHED),
    "the last of a rule unheard": (_unheard("thrice", 7), Invariant.ALL_PUBLISHED),
    "one in the middle of a cancelled rule unheard": (_unheard("endless", 5), Invariant.ALL_PUBLISHED),
    "counted and not published": (_row("endless", sequence=3), Invariant.ALL_PUBLISHED),
    "a webhook without an effect": (_set("calls", []), Invariant.ONE_EFFECT),
    "two effects": (_also("calls", a_call("once", 5)), Invariant.ONE_EFFECT),
    "two keys": (_also("calls", a_call("once", 5, key="another", effect=False)), Invariant.ONE_EFFECT),
    "completed and never called": (_also("deliveries", DeliveryRow("once", "k", "COMPLETED")), Invariant.ONE_EFFECT),
    "given up": (_set("deliveries", [DeliveryRow("once", "key of once at 5", "FAILED")]), Invariant.ONE_EFFECT),
    "published early": (_also("heard", heard("put off", 8, fired=7.9)), Invariant.NEVER_EARLY),
    "heard early": (_also("heard", heard("put off", 8, fired=8.01, seen_at=at(7.99))), Invariant.NEVER_EARLY),
    "called early": (_also("calls", a_call("once", 5, seen_at=at(4.9), effect=False)), Invariant.NEVER_EARLY),
    "a delayed message that never came": (
        lambda ledger: ledger.heard_delayed.remove(HeardMessage("later", at(5.1))),
        Invariant.DELAYED_KEPT,
    ),
    "a delayed message early": (_also("heard_delayed", HeardMessage("again", at(5.9))), Invariant.DELAYED_KEPT),
    "fired after its cancel": (_also("heard", heard("endless", 7)), Invariant.STAYS_CANCELLED),
    "fired after the cancel of an unknown id": (
        _set("replies", [Reply("endless", Kind.CANCEL, 0, "unknown", at(4.0))]),
        Invariant.STAYS_CANCELLED,
    ),
    "fired after it was put off": (_also("heard", heard("put off", 5)), Invariant.STAYS_CANCELLED),
    "a duplicate before any fault": (_also("heard", heard("thrice", 5, fired=5.5)), Invariant.FEW_DUPLICATES),
    "a duplicate and an orderly stop": (_set("struck", [a_fault(6.1, 6.5, Fault.TERM)]), Invariant.FEW_DUPLICATES),
    "a duplicate and a killed consumer": (
        _set("struck", [a_fault(6.1, 6.5, target="consumer")]),
        Invariant.FEW_DUPLICATES,
    ),
    "more duplicates than were in flight": (_also("heard", heard("endless", 6, fired=6.3)), Invariant.FEW_DUPLICATES),
    "something is left": (_set("left_over", ["3 jobs are still pending"]), Invariant.DRAINED),
    "the run saw no end": (_set("drained_at", None), Invariant.DRAINED),
    "an end that came late": (_set("drained_at", at(7) + Ledger().drain_within), Invariant.DRAINED),
    "a ring without a request": (_also("heard", heard("thrice", 8)), Invariant.AS_ASKED),
    "a job without a request": (_also("heard", heard("who?", 8)), Invariant.AS_ASKED),
    "a ring between two": (_also("heard", heard("thrice", 6.5)), Invariant.AS_ASKED),
    "writes to an old primary": (_also("written_to_old_primary", "3 transactions"), Invariant.ONE_PRIMARY),
    "a process that ended": (_also("ended", Ended("producer-1", at(3), 1)), Invariant.STANDS),
}


def test_a_good_run_passes() -> None:
    assert check(a_good_run()) == []


@pytest.mark.parametrize(("change", "invariant"), BROKEN.values(), ids=BROKEN)
def test_a_broken_promise_is_found(change: Change, invariant: Invariant) -> None:
    ledger = a_good_run()
    change(ledger)
    assert invariant in {violation.invariant for violation in check(ledger)}


def test_every_invariant_can_be_broken() -> None:
    assert {invariant for _, invariant in BROKEN.values()} == set(Invariant)


def _all_of(*changes: Change) -> Change:
    def change(ledger: Ledger) -> None:
        for each in changes:
            each(ledger)

    return change


EXPLAINED: dict[str, Change] = {
    "the listener's queue delivers again": _also("heard", heard("once", 5, webhook=True, seen_at=at(9))),
    "in flight when it was cancelled": _also("heard", heard("endless", 6, fired=6.55)),
    "a reschedule that came late, and began a new life": _all_of(
        _also("heard", heard("put off", 5)),
        _set("replies", [Reply("put off", Kind.REQUEST, 2, "accepted", at(5.5))]),
    ),
    "a cancel that overtook its request": _all_of(
        _row("endless", revision=1, sequence=0),
        _unheard("endless", 5),
        _unheard("endless", 6),
        _set("replies", [Reply("endless", Kind.CANCEL, 0, "unknown", at(4.0))]),
    ),
    "heard by the receiver alone": _unheard("once", 5),
}


@pytest.mark.parametrize("change", EXPLAINED.values(), ids=EXPLAINED)
def test_an_explained_difference_is_no_violation(change: Change) -> None:
    ledger = a_good_run()
    ledger.in_flight = 5
    change(ledger)
    assert check(ledger) == []


def test_a_row_that_is_still_pending_is_not_called_lost() -> None:
    ledger = a_good_run()
    ledger.jobs = [JobRow("thrice", "pending", 1, 3) if row.id == "thrice" else row for row in ledger.jobs]
    assert check(ledger) == []
