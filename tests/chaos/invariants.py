"""What must hold of every ledger, whatever was struck. Pure, so that tests can pass a ledger for each way in which a
promise can be broken and see that it is found.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from tests.chaos.history import History, by_job
from tests.chaos.ledger import Heard, Kind, Ledger, Struck

# After one of these a job does not ring: it was cancelled, or is not known yet, and its late request will stay out.
CANCELS = {"cancelled", "unknown"}


class Invariant(StrEnum):
    COMMANDS_KEPT = "no acknowledged command is lost"
    ALL_PUBLISHED = "every due occurrence is published at least once"
    ONE_EFFECT = "one effect per occurrence, and one key"
    NEVER_EARLY = "nothing early"
    DELAYED_KEPT = "every confirmed delayed message arrives, and none before its moment"
    STAYS_CANCELLED = "nothing after an acknowledged cancel or reschedule that was not in flight"
    FEW_DUPLICATES = "duplicates only where a fault explains them, at most faults x in flight"
    DRAINED = "all done soon after the last fault"
    AS_ASKED = "nothing rings without a request for it"
    ONE_PRIMARY = "no service writes to a primary whose standby has taken over"
    STANDS = "no process ends unless it is made to"


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: Invariant
    text: str
    job: str | None = None


def check(ledger: Ledger) -> list[Violation]:
    found = [*_duplicates(ledger), *_drained(ledger), *_standing(ledger)]
    found += _delayed_kept(ledger)
    found += (Violation(Invariant.ONE_PRIMARY, text) for text in ledger.written_to_old_primary)
    for history in by_job(ledger).values():
        for invariant, rule in OF_EACH_JOB.items():
            if history.rolled_back and invariant in NEED_EVERY_COMMIT:
                continue
            found += (Violation(invariant, text, history.job) for text in rule(history))
    return found


def _commands_kept(history: History) -> Iterator[str]:
    row, plans = history.row, history.plans
    if not history.commands:
        return
    if row is None:
        yield "was confirmed to its sender and is in no table"
        return
    newest = max(plans, default=0)
    if row.status == "cancelled" and not history.is_cancelled:
        yield "is cancelled, and no command has cancelled it"
    if row.status == "done" and row.revision < newest:
        yield f"is done as revision {row.revision}; revision {newest} is not stored"
    if history.rolled_back:
        return
    if row.status == "done" and any(r.kind is Kind.CANCEL and r.outcome in CANCELS for r in history.replies):
        yield "its cancel was acknowledged, and it is done"


def _all_published(history: History) -> Iterator[str]:
    for due_at in history.missing():
        yield f"{_clock(due_at)} was never published"
    if history.row is not None and history.row.sequence > len(history.rung):
        yield f"the producer counts {history.row.sequence} as published, {len(history.rung)} were heard"


def _one_effect(history: History) -> Iterator[str]:
    effects = Counter(call.due_at for call in history.calls if call.effect)
    for due_at in sorted(history.with_webhook):
        if effects[due_at] != 1:
            yield f"{effects[due_at]} effects of {_clock(due_at)}"
    keys: dict[datetime, set[str]] = {}
    for seen in history.seen:
        keys.setdefault(seen.due_at, set()).add(seen.key)
    yield from (f"{_clock(due_at)} has {len(had)} keys" for due_at, had in keys.items() if len(had) > 1)
    acted_on = {call.key for call in history.calls if call.effect}
    for delivery in history.deliveries:
        if delivery.status == "COMPLETED" and delivery.key not in acted_on:
            yield f"{delivery.key} is COMPLETED, and the receiver has not acted on it"
        if delivery.status == "FAILED":
            yield f"{delivery.key} was given up"


def _never_early(history: History) -> Iterator[str]:
    for heard in history.heard:
        if min(heard.fired_at, heard.seen_at) < heard.due_at:
            yield f"due {_clock(heard.due_at)}, fired {_clock(heard.fired_at)}, heard {_clock(heard.seen_at)}"
    for call in history.calls:
        if call.seen_at < call.due_at:
            yield f"due {_clock(call.due_at)}, called {_clock(call.seen_at)}"


def _stays_cancelled(history: History) -> Iterator[str]:
    """Only events claimed before the reply was sent may be published after it: those were in flight."""
    for reply in history.replies:
        after = [heard for heard in history.heard if heard.fired_at > reply.seen_at]
        if reply.outcome == "rescheduled":
            now_asked = [plan for revision, plan in history.plans.items() if revision >= reply.revision]
            after = [heard for heard in after if all(plan.place(heard.due_at) is None for plan in now_asked)]
        elif reply.outcome not in CANCELS:
            continue
        for heard in after:
            yield f"{reply.outcome} at {_clock(reply.seen_at)}, and fired at {_clock(heard.fired_at)}"


def _as_asked(history: History) -> Iterator[str]:
    plans = history.plans.values()
    for due_at in sorted(history.rung):
        if all(plan.place(due_at) is None for plan in plans):
            yield f"rang for {_clock(due_at)}"


OF_EACH_JOB: dict[Invariant, Callable[[History], Iterator[str]]] = {
    Invariant.COMMANDS_KEPT: _commands_kept,
    Invariant.ALL_PUBLISHED: _all_published,
    Invariant.ONE_EFFECT: _one_effect,
    Invariant.NEVER_EARLY: _never_early,
    Invariant.STAYS_CANCELLED: _stays_cancelled,
    Invariant.AS_ASKED: _as_asked,
}


# An effect that was committed and is lost with the commit may be missing or come twice.
NEED_EVERY_COMMIT = {Invariant.ONE_EFFECT, Invariant.STAYS_CANCELLED}


def duplicates_of(heard: list[Heard]) -> list[tuple[Heard, Heard]]:
    """Pairs of consecutive copies of one event. Two copies of one claim have the same `fired_at`: those come from the
    listener's queue, which delivers again after a lost connection, and do not count.
    """
    copies: dict[str, dict[datetime, Heard]] = {}
    for one in heard:
        copies.setdefault(one.key, {}).setdefault(one.fired_at, one)
    return [pair for of_key in copies.values() for pair in pairwise(of_key[at] for at in sorted(of_key))]


def explains(struck: Struck, first: Heard, second: Heard, effects_last: timedelta) -> bool:
    effects_until = struck.ended_at + effects_last
    return struck.strike.may_duplicate and struck.began_at <= second.fired_at and first.fired_at <= effects_until


def _duplicates(ledger: Ledger) -> Iterator[Violation]:
    duplicates = duplicates_of(ledger.heard)
    possible_causes = [struck for struck in ledger.struck if struck.strike.may_duplicate]
    if len(duplicates) > len(possible_causes) * ledger.in_flight:
        text = f"{len(duplicates)} duplicates; {len(possible_causes)} faults x {ledger.in_flight} in flight"
        yield Violation(Invariant.FEW_DUPLICATES, text)
    for first, second in duplicates:
        if not any(explains(struck, first, second, ledger.effects_last) for struck in possible_causes):
            text = (
                f"published at {first.fired_at:%H:%M:%S.%f} and again at {second.fired_at:%H:%M:%S.%f}, for no reason"
            )
            yield Violation(Invariant.FEW_DUPLICATES, text, first.job)


def _delayed_kept(ledger: Ledger) -> Iterator[Violation]:
    """A standby that was promoted may lack messages that were stored shortly before."""
    first_seen: dict[str, datetime] = {}
    for heard in ledger.heard_delayed:
        first_seen[heard.id] = min(heard.seen_at, first_seen.get(heard.id, heard.seen_at))
    for message in ledger.delayed:
        seen_at = first_seen.get(message.id)
        if seen_at is None and not any(
            lost.since - ledger.effects_last <= message.confirmed_at <= lost.until for lost in ledger.rolled_back
        ):
            yield Violation(Invariant.DELAYED_KEPT, f"due {_clock(message.due_at)}, never came", message.id)
        if seen_at is not None and seen_at < message.due_at:
            text = f"due {_clock(message.due_at)}, came {_clock(seen_at)}"
            yield Violation(Invariant.DELAYED_KEPT, text, message.id)


def _drained(ledger: Ledger) -> Iterator[Violation]:
    yield from (Violation(Invariant.DRAINED, text) for text in ledger.left_over)
    if ledger.drained_at is None:
        yield Violation(Invariant.DRAINED, "the run did not see its end")
    elif ledger.last_fault_at is not None and ledger.drained_at - ledger.last_fault_at > ledger.drain_within:
        took = (ledger.drained_at - ledger.last_fault_at).total_seconds()
        allowed = ledger.drain_within.total_seconds()
        yield Violation(Invariant.DRAINED, f"took {took:.1f} s after the last fault, not {allowed:.0f} s")


def _standing(ledger: Ledger) -> Iterator[Violation]:
    for ended in ledger.ended:
        text = f"{ended.name} ended at {ended.at:%H:%M:%S} with {ended.exit_code}, last log line: {ended.last_log_line}"
        yield Violation(Invariant.STANDS, text)


def _clock(instant: datetime) -> str:
    return f"{instant:%H:%M:%S.%f}"
