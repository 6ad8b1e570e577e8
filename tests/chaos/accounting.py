"""The table of a run: one line per fault, with what became of the occurrences that fell into its share of the time. A
moment belongs to the fault that struck last before it, and a duplicate to what struck between its copies: so
the lines add up to the whole. Pure.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.chaos.checking import duplicates_of, explains
from tests.chaos.history import by_job
from tests.chaos.ledger import Heard, Ledger, Struck

BEFORE = "before the first fault"
HEADINGS = ("fault", "count", "lost", "duplicated", "effects", "worst recovery")


@dataclass(slots=True)
class Line:
    """`effects` of `webhooks` occurrences; `recovery` is how long the last of those that were waiting when the fault
    ended had still to wait. Where faults overlap, each is charged with it.
    """

    fault: str
    count: int = 0
    lost: int = 0
    duplicated: int = 0
    effects: int = 0
    webhooks: int = 0
    recovery: float = 0.0


def account(ledger: Ledger) -> list[Line]:
    """By fault, in the order of their names; the last line is the sum."""
    struck = sorted((one for one in ledger.struck if not one.missed), key=lambda one: one.began_at)
    began = [one.began_at for one in struck]
    lines = {BEFORE: Line(BEFORE)}
    for one in struck:
        lines.setdefault(one.strike.label, Line(one.strike.label)).count += 1

    def of(moment: datetime) -> Line:
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
        culprit = _culprit(struck, first, copy)
        (lines[culprit.strike.label] if culprit else of(first.fired_at)).duplicated += 1
    _charge_recovery(lines, struck, _waits(ledger))
    ordered = [lines[BEFORE], *(lines[label] for label in sorted(lines) if label != BEFORE)]
    return [*ordered, _sum(ordered)]


def _culprit(struck: Sequence[Struck], first: Heard, copy: Heard) -> Struck | None:
    guilty = sorted((one for one in struck if explains(one, first, copy)), key=lambda one: one.hit_at)
    between = [one for one in guilty if one.hit_at >= first.fired_at]
    if between:
        return between[0]
    return guilty[-1] if guilty else None


def _waits(ledger: Ledger) -> list[tuple[datetime, datetime]]:
    """From when something could have happened to when it did: an occurrence rings, a published webhook is called."""
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


def _charge_recovery(
    lines: dict[str, Line], struck: Sequence[Struck], waits: Iterable[tuple[datetime, datetime]]
) -> None:
    for since, until in waits:
        for one in struck:
            if since <= one.ended_at <= until:
                line = lines[one.strike.label]
                line.recovery = max(line.recovery, (until - one.ended_at).total_seconds())


def _sum(lines: Sequence[Line]) -> Line:
    return Line(
        "all",
        sum(line.count for line in lines),
        sum(line.lost for line in lines),
        sum(line.duplicated for line in lines),
        sum(line.effects for line in lines),
        sum(line.webhooks for line in lines),
        max(line.recovery for line in lines),
    )


def as_table(lines: Sequence[Line]) -> str:
    """Markdown that can be read as it is."""
    rows: list[tuple[str, ...]] = [HEADINGS]
    rows += [
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
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    rows.insert(1, ("-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])))
    return "\n".join(
        "| "
        + " | ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        + " |"
        for row in rows
    )
