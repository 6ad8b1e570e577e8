"""The table of a cluster run: one row per fault, with what came between it and the next one. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.chaos.cluster.calm import ON_TIME
from tests.chaos.history import by_job
from tests.chaos.invariants import duplicates_of
from tests.chaos.ledger import Heard, Ledger
from tests.chaos.result_table import BEFORE, aligned, cause_of

HEADINGS = (
    "fault",
    "count",
    "heard",
    "lost",
    "early",
    "copies",
    "effects",
    "forgotten",
    "longest silence",
    "on time after",
)


@dataclass(slots=True)
class Row:
    """`heard` counts occurrences that were heard, `early` events that came before their moment. `effects` counts
    webhook calls that acted, of `webhooks` occurrences. `forgotten` counts commands that were answered and that the
    promoted standby did not have. `silence` is the longest time without any event; `on_time` is the time from the begin
    of the fault until the last late event.
    """

    fault: str
    count: int = 0
    heard: int = 0
    lost: int = 0
    early: int = 0
    copies: int = 0
    effects: int = 0
    webhooks: int = 0
    forgotten: int = 0
    silence: timedelta = timedelta(0)
    on_time: timedelta = timedelta(0)


def account(ledger: Ledger) -> list[Row]:
    """The rows in the order of the faults' names; the last row is the sum."""
    struck = sorted((one for one in ledger.struck if not one.missed), key=lambda one: one.began_at)
    began = [one.began_at for one in struck]
    rows = {BEFORE: Row(BEFORE)}
    for one in struck:
        rows.setdefault(one.strike.label, Row(one.strike.label)).count += 1

    def of(moment: datetime) -> Row:
        place = bisect_right(began, moment)
        return rows[struck[place - 1].strike.label if place else BEFORE]

    _add_jobs(ledger, of)
    for first, copy in duplicates_of(ledger.heard):
        cause = cause_of(struck, first, copy, ledger.effects_last)
        (rows[cause.strike.label] if cause else of(first.fired_at)).copies += 1
    for rolled_back in ledger.rolled_back:
        of(rolled_back.since).forgotten += rolled_back.commands
    _add_times(ledger, began, of)
    ordered = [rows[BEFORE], *(rows[label] for label in sorted(rows) if label != BEFORE)]
    return [*ordered, _sum(ordered)]


def _add_jobs(ledger: Ledger, of: Callable[[datetime], Row]) -> None:
    for history in by_job(ledger).values():
        for due_at in history.missing():
            of(due_at).lost += 1
        for heard in history.heard:
            of(heard.due_at).early += min(heard.fired_at, heard.seen_at) < heard.due_at
        for due_at in history.with_webhook:
            of(due_at).webhooks += 1
        for call in history.calls:
            of(call.due_at).effects += call.effect


def _add_times(ledger: Ledger, began: Sequence[datetime], of: Callable[[datetime], Row]) -> None:
    previous: datetime | None = None
    for heard, late in _first_heard(ledger):
        row, place = of(heard.seen_at), bisect_right(began, heard.seen_at)
        row.heard += 1
        row.silence = max(row.silence, heard.seen_at - (previous or heard.seen_at))
        if late > ON_TIME and place:
            row.on_time = max(row.on_time, heard.seen_at - began[place - 1])
        previous = heard.seen_at


def _first_heard(ledger: Ledger) -> list[tuple[Heard, timedelta]]:
    """The first copy of each event in the order of hearing, and how late it was: later than its moment, and than the
    confirm of the command that asked for it.
    """
    confirmed: dict[str, list[tuple[datetime, datetime]]] = {}
    for command in ledger.commands:
        if command.plan is not None:
            confirmed.setdefault(command.job, []).append((command.plan.first, command.confirmed_at))
    first: dict[tuple[str, datetime], Heard] = {}
    for heard in sorted(ledger.heard, key=lambda one: one.seen_at):
        first.setdefault((heard.job, heard.due_at), heard)
    waits = []
    for heard in first.values():
        asked = [at for begin, at in confirmed.get(heard.job, ()) if begin <= heard.due_at]
        waits.append((heard, heard.seen_at - max(heard.due_at, min(asked, default=heard.due_at))))
    return waits


def _sum(rows: list[Row]) -> Row:
    return Row(
        "all",
        sum(row.count for row in rows),
        sum(row.heard for row in rows),
        sum(row.lost for row in rows),
        sum(row.early for row in rows),
        sum(row.copies for row in rows),
        sum(row.effects for row in rows),
        sum(row.webhooks for row in rows),
        sum(row.forgotten for row in rows),
        max(row.silence for row in rows),
        max(row.on_time for row in rows),
    )


def as_table(rows: list[Row]) -> str:
    """The rows as a Markdown table with aligned columns."""
    lines = [
        (
            row.fault,
            str(row.count),
            str(row.heard),
            str(row.lost),
            str(row.early),
            str(row.copies),
            f"{row.effects} of {row.webhooks}",
            str(row.forgotten),
            f"{row.silence.total_seconds():.1f} s",
            f"{row.on_time.total_seconds():.1f} s",
        )
        for row in rows
    ]
    return aligned(HEADINGS, lines)
