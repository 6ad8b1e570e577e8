"""The table of a run: one row per fault, with the occurrences that were due after it and before the next fault. A
duplicate belongs to the fault that struck between its copies. So the rows add up to the whole. Pure.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.chaos.history import by_job
from tests.chaos.invariants import duplicates_of, explains
from tests.chaos.ledger import Heard, Ledger, Struck

BEFORE = "before the first fault"
HEADINGS = ("fault", "count", "lost", "duplicated", "effects", "worst recovery")


@dataclass(slots=True)
class Row:
    """One fault's row. `effects` counts webhook calls that acted, of `webhooks` occurrences. `recovery` is the time
    from the end of the fault until the last occurrence that had waited was published; overlapping faults all get it.
    """

    fault: str
    count: int = 0
    lost: int = 0
    duplicated: int = 0
    effects: int = 0
    webhooks: int = 0
    recovery: float = 0.0


def account(ledger: Ledger) -> list[Row]:
    """The rows by name of the fault; the last row is the sum."""
    struck = sorted((one for one in ledger.struck if not one.missed), key=lambda one: one.began_at)
    began = [one.began_at for one in struck]
    lines = {BEFORE: Row(BEFORE)}
    for one in struck:
        lines.setdefault(one.strike.label, Row(one.strike.label)).count += 1

    def of(moment: datetime) -> Row:
        place = bisect_right(began, moment)
        return lines[struck[place - 1].strike.label if place else BEFORE]

    for history in by_job(ledger).values():
        for due_at in history.missing():
            of(due_at).lost += 1
        for due_at in history.with_webhook:
            of(due_at).webhooks += 1
        for call in history.calls:
            of(call.due_at).effects += call.effect
    for first, copy in duplicates_of(ledger.heard):
        cause = cause_of(struck, first, copy, ledger.effects_last)
        (lines[cause.strike.label] if cause else of(first.fired_at)).duplicated += 1
    _add_recovery(lines, struck, _waits(ledger))
    ordered = [lines[BEFORE], *(lines[label] for label in sorted(lines) if label != BEFORE)]
    return [*ordered, _sum(ordered)]


def cause_of(struck: Sequence[Struck], first: Heard, copy: Heard, effects_last: timedelta) -> Struck | None:
    """The fault between the two copies of an event, or the last one before them that can explain the second."""
    possible = sorted((one for one in struck if explains(one, first, copy, effects_last)), key=lambda one: one.hit_at)
    between = [one for one in possible if one.hit_at >= first.fired_at]
    if between:
        return between[0]
    return possible[-1] if possible else None


def _waits(ledger: Ledger) -> list[tuple[datetime, datetime]]:
    """For each publish and each webhook call: when it was possible and when it happened."""
    waits = []
    for history in by_job(ledger).values():
        confirmed_at = min((c.confirmed_at for c in history.commands if c.plan is not None), default=None)
        effects = {call.due_at: call.seen_at for call in history.calls if call.effect}
        first: dict[datetime, datetime] = {}
        for heard in history.heard:
            first[heard.due_at] = min(heard.seen_at, first.get(heard.due_at, heard.seen_at))
        for due_at, heard_at in first.items():
            waits.append((max(due_at, confirmed_at or due_at), heard_at))
            if due_at in effects:
                waits.append((heard_at, effects[due_at]))
    return waits


def _add_recovery(lines: dict[str, Row], struck: Sequence[Struck], waits: Iterable[tuple[datetime, datetime]]) -> None:
    for since, until in waits:
        for one in struck:
            if since <= one.ended_at <= until:
                line = lines[one.strike.label]
                line.recovery = max(line.recovery, (until - one.ended_at).total_seconds())


def _sum(lines: Sequence[Row]) -> Row:
    return Row(
        "all",
        sum(line.count for line in lines),
        sum(line.lost for line in lines),
        sum(line.duplicated for line in lines),
        sum(line.effects for line in lines),
        sum(line.webhooks for line in lines),
        max(line.recovery for line in lines),
    )


def as_table(lines: Sequence[Row]) -> str:
    """The rows as a Markdown table with aligned columns."""
    rows = [
        (
            line.fault,
            str(line.count),
            str(line.lost),
            str(line.duplicated),
            f"{line.effects} of {line.webhooks}",
            f"{line.recovery:.1f} s",
        )
        for line in lines
    ]
    return aligned(HEADINGS, rows)


def aligned(headings: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    rows = [headings, *lines]
    widths = [max(len(row[column]) for row in rows) for column in range(len(headings))]
    rows.insert(1, ("-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])))
    return "\n".join(
        "| "
        + " | ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        + " |"
        for row in rows
    )
