"""The report of a failed run: each broken promise with the history of its job and the faults of that time. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from tests.chaos.history import History, by_job
from tests.chaos.invariants import Violation
from tests.chaos.ledger import Kind, Ledger

SHOWN = 5
AROUND = timedelta(seconds=5)
Entry = tuple[datetime, str]


def explain(ledger: Ledger, violations: Sequence[Violation]) -> str:
    """The first SHOWN jobs with their history, the other violations as one line each."""
    histories = by_job(ledger)
    began = min((struck.began_at for struck in ledger.struck), default=None)
    text: list[str] = []
    told: set[str] = set()
    for violation in violations:
        text.append(f"✗ {violation.invariant}: {violation.job or ''} {violation.text}")
        if violation.job in histories and violation.job not in told and len(told) < SHOWN:
            told.add(violation.job)
            text += _lines(ledger, histories[violation.job], began)
    return "\n".join(text)


def _lines(ledger: Ledger, history: History, began: datetime | None) -> Iterator[str]:
    own = sorted(_of_job(history))
    if not own:
        return
    start, end = own[0][0] - AROUND, own[-1][0] + AROUND
    others = [entry for entry in _of_faults(ledger) if start <= entry[0] <= end]
    for moment, what in sorted([*own, *others]):
        since = (moment - (began or start)).total_seconds()
        yield f"    {since:8.3f} s  {moment:%H:%M:%S.%f}  {what}"
    if history.row is not None:
        row = history.row
        yield f"    in the end: {row.status}, revision {row.revision}, {row.sequence} published by its own count"


def _of_job(history: History) -> Iterator[Entry]:
    for command in history.commands:
        what = f"{command.kind} of revision {command.revision}" if command.kind is Kind.REQUEST else command.kind
        yield command.confirmed_at, f"application  {what} confirmed, try {command.tries}"
    for reply in history.replies:
        yield (
            reply.seen_at,
            f"application  is told that its {reply.kind} (revision {reply.revision}) is {reply.outcome}",
        )
    for plan in history.plans.values():
        for place in range(min(plan.count or 1, 10)):
            yield plan.at(place), f"clock        occurrence {place + 1} is due"
    for heard in history.heard:
        yield heard.fired_at, f"producer     publishes {heard.key} of {heard.due_at:%H:%M:%S.%f}"
        yield heard.seen_at, f"listener     hears {heard.key}, fired at {heard.fired_at:%H:%M:%S.%f}"
    for call in history.calls:
        yield call.seen_at, f"receiver     {call.behaviour}{', acts' if call.effect else ''}: {call.key}"


def _of_faults(ledger: Ledger) -> Iterator[Entry]:
    for struck in ledger.struck:
        what = f"{struck.strike.label} {struck.strike.victim}".strip()
        yield struck.began_at, f"⚡ {what}"
        yield struck.ended_at, f"⚡ over: {what} {struck.note}"
    for ended in ledger.ended:
        yield ended.at, f"⚡ {ended.name} ended by itself with {ended.exit_code}"
