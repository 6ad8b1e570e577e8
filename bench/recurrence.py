"""What a step of a rule costs, by the rule's age: `python -m bench.recurrence`.

Each rule is asked for the next ring again and again, once right after its start and once years later, from cursors as
they come out of the database. The figure that counts is the ratio old to young. dateutil's own `after()` answers the
same question in the same run, where that ends within reason. CPU time, so that a busy machine does not
spoil it. A table on a terminal, JSON when piped.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from dateutil.rrule import rrulestr  # type: ignore[import-untyped]

from shared.recurrence import Occurrence, Rule, RuleSpec, compile_rule
from shared.recurrence.compile import compiled

START = datetime(2006, 1, 2, 9, tzinfo=UTC)
STEPS = 500
ROUNDS = 15
PATIENCE = 1e6
"""Microseconds that dateutil may take for one answer; a rule for which it would take more is not measured."""

RULES: list[tuple[str, dict[str, Any], int]] = [
    ("daily", {"rrule": "FREQ=DAILY"}, 20),
    ("daily, workdays", {"rrule": "FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR"}, 20),
    ("daily with COUNT", {"rrule": "FREQ=DAILY;COUNT=100000"}, 20),
    ("every other week, two days", {"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU"}, 20),
    ("last workday of the month", {"rrule": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"}, 20),
    ("hourly", {"rrule": "FREQ=HOURLY"}, 10),
    ("minutely", {"rrule": "FREQ=MINUTELY"}, 10),
    ("every 90 minutes in office hours", {"rrule": "FREQ=MINUTELY;INTERVAL=90;BYHOUR=9,10,11,12,13,14,15,16"}, 10),
    ("cron, daily", {"cron": "0 9 * * *"}, 20),
    ("cron, every five minutes", {"cron": "*/5 * * * *"}, 10),
    ("every_seconds", {"every_seconds": 90}, 10),
]


@dataclass(frozen=True)
class Line:
    rule: str
    years: int
    young_us: float
    old_us: float
    old_to_young: float
    dateutil_young_us: float | None
    dateutil_old_us: float | None
    dateutil_to_ours_when_old: float | None


def main() -> None:
    lines = [measure(name, spec, years) for name, spec, years in RULES]
    cold = cold_microseconds()
    if sys.stdout.isatty():
        print_table(lines, cold)
    else:
        json.dump({"lines": [asdict(line) for line in lines], "cold_us": cold}, sys.stdout, indent=2)
        sys.stdout.write("\n")


def measure(name: str, fields: dict[str, Any], years: int) -> Line:
    rule = compile_rule(RuleSpec(start_at=START.isoformat(), timezone="Europe/Berlin", **fields))
    later = START + timedelta(days=365.25 * years)
    # The two ages take turns, so that a busy moment of the machine meets both.
    rounds = [(step_cost(rule, START), step_cost(rule, later)) for _ in range(ROUNDS)]
    young, old = (min(costs) for costs in zip(*rounds, strict=True))
    text = fields.get("rrule")
    theirs_young = dateutil_cost(str(text), START) if text else None
    theirs_old = dateutil_cost(str(text), later) if text else None
    return Line(
        name,
        years,
        round(young, 2),
        round(old, 2),
        round(old / young, 2),
        theirs_young and round(theirs_young, 1),
        theirs_old and round(theirs_old, 1),
        theirs_old and round(theirs_old / old, 1),
    )


def step_cost(rule: Rule, since: datetime) -> float:
    """Microseconds for one step, the mean over a walk that begins at this moment."""
    ring: Occurrence | None = Occurrence(since, 1)
    steps = 0
    begin = time.process_time()
    while ring is not None and steps < STEPS:
        ring = rule.next_after(ring)
        steps += 1
    return (time.process_time() - begin) / steps * 1e6


def dateutil_cost(text: str, since: datetime) -> float | None:
    """The same with dateutil's `after()`, in UTC, which spares it all zones. None if one answer would take too long."""
    rule = rrulestr(text, dtstart=START)
    tenth = START + (since - START) / 10
    if 10 * timed(lambda: rule.after(tenth)) > PATIENCE:
        return None
    return min(timed(lambda: rule.after(since)) for _ in range(3))


def cold_microseconds() -> float:
    """A rule nobody has asked for lately: compiled anew, then one step."""
    specs = [
        RuleSpec(start_at=(START + timedelta(minutes=n)).isoformat(), timezone="Europe/Berlin", rrule="FREQ=DAILY")
        for n in range(STEPS)
    ]
    cursor = Occurrence(START + timedelta(days=3000), 1)
    compiled.cache_clear()

    def all_once() -> None:
        for spec in specs:
            compile_rule(spec).next_after(cursor)

    return round(timed(all_once) / len(specs), 1)


def timed(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return (time.process_time() - begin) * 1e6


def print_table(lines: list[Line], cold: float) -> None:
    # Here and not above: piped, as in CI, the figures need nothing for looks.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(title="Cost of a step, microseconds", caption=f"compiled anew and one step: {cold} µs")
    for column in ("rule", "years", "young", "old", "old / young", "dateutil young", "dateutil old", "dateutil / ours"):
        table.add_column(column, justify="left" if column == "rule" else "right", no_wrap=column == "rule")
    for line in lines:
        table.add_row(line.rule, *("-" if value is None else f"{value:,}" for value in list(asdict(line).values())[1:]))
    Console().print(table)


if __name__ == "__main__":
    main()
