"""What a step of a rule costs, by the rule's age.

Each rule is asked for the next ring again and again, once right after its start and once years later, from cursors as
they come out of the database. The figure that counts is the ratio old to young. CPU time, so that a busy machine does
not spoil it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from dateutil.rrule import rrulestr  # type: ignore[import-untyped]

from bench.figures import Beside, Figure, Goal
from bench.plan import Plan
from bench.rig import Rig
from shared.recurrence import Occurrence, Rule, RuleSpec, compile_rule
from shared.recurrence.compile import compiled

START = datetime(2006, 1, 2, 9, tzinfo=UTC)
YEAR = timedelta(days=365.25)
STEPS = 500
ROUNDS = 15
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
class StepCost:
    young_us: float
    old_us: float


async def run(_: Rig, plan: Plan) -> AsyncIterator[Figure]:
    for name, spec, years in RULES:
        cost = await asyncio.to_thread(measure, spec, years, max(1, int(ROUNDS * plan.seconds / 2)))
        what, young = f"{name}, after {years} years", Beside("when young", cost.young_us)
        yield Figure(what, cost.old_us, "µs/step", young, Goal(at_most=1.5))
    by_dateutil = await asyncio.to_thread(dateutil_cost, "FREQ=DAILY", START + 20 * YEAR)
    yield Figure("daily, after 20 years, by dateutil's after()", by_dateutil, "µs/step")
    yield Figure("compiled anew, and one step", await asyncio.to_thread(cold_microseconds), "µs/step")


def measure(fields: dict[str, Any], years: int, rounds: int) -> StepCost:
    rule = compile_rule(RuleSpec(start_at=START.isoformat(), timezone="Europe/Berlin", **fields))
    later = START + years * YEAR
    # The two ages take turns, so that a busy moment of the machine meets both.
    taken = [(step_cost(rule, START), step_cost(rule, later)) for _ in range(rounds)]
    young, old = (min(costs) for costs in zip(*taken, strict=True))
    return StepCost(round(young, 2), round(old, 2))


def step_cost(rule: Rule, since: datetime) -> float:
    """Measure the microseconds of one step, the mean over a walk that begins at this moment."""
    ring: Occurrence | None = Occurrence(since, 1)
    steps = 0
    begin = time.process_time()
    while ring is not None and steps < STEPS:
        ring = rule.next_after(ring)
        steps += 1
    return (time.process_time() - begin) / steps * 1e6


def dateutil_cost(text: str, since: datetime) -> float:
    """Measure the same with dateutil's `after()`, in UTC, which spares it all zones."""
    rule = rrulestr(text, dtstart=START)
    return min(timed(lambda: rule.after(since)) for _ in range(3))


def cold_microseconds() -> float:
    """Measure a rule that is not in the cache: it is compiled, then takes one step."""
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
