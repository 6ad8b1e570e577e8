"""Compiles a RuleSpec into a Rule: checks every field, wires the modules of this package, and caches the result."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import lru_cache, partial
from typing import get_args

from shared.errors import BadRule
from shared.recurrence.arithmetic import DAY, date_of
from shared.recurrence.cron import read_cron
from shared.recurrence.dates import excluded_dates, extra_dates, last_at, last_wall
from shared.recurrence.days import days_of_month
from shared.recurrence.ical import read_text
from shared.recurrence.parts import DayParts, RuleParts
from shared.recurrence.patterns import Pattern, PositionsInPeriods, TimesOnDays, at_positions, times_of_day
from shared.recurrence.periods import DaysOfPeriods, EveryDays, Months, PeriodGrid, Periods, Weeks, Years
from shared.recurrence.rule import CalendarRule, IntervalRule, Rule
from shared.recurrence.series import Series
from shared.recurrence.start import Start, start_from_dtstart, start_from_text
from shared.recurrence.ticks import UNITS, Ticks
from shared.recurrence.zones import Clock, Fold, Gap

MAX_INTERVAL_SECONDS = 300 * 366 * DAY
PERIODS: dict[str, Callable[[DayParts], Periods]] = {
    "WEEKLY": Weeks,
    "MONTHLY": lambda parts: Months(partial(days_of_month, parts)),
    "YEARLY": Years,
}


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """What a recurring job stores about its rule, as the request gave it; it survives JSON. `compile_rule` checks it.

    `start_at` is an RFC 3339 instant, or a local date-time without offset, which is wall time in `timezone`. Exactly
    one of `rrule`, `cron` and `every_seconds` is given. `dst_gap` and `dst_fold` default by the kind of rule.
    """

    start_at: str
    timezone: str = "UTC"
    rrule: str | None = None
    cron: str | None = None
    every_seconds: int | None = None
    dst_gap: Gap | None = None
    dst_fold: Fold | None = None

    def to_json(self) -> str:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(given, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "RuleSpec":
        return cls(**json.loads(text))


def compile_rule(spec: RuleSpec) -> Rule:
    """Return the rule of a spec, from a cache if it was compiled lately. Raises BadRule, which names the bad field."""
    return compiled(spec)


@lru_cache(maxsize=1024)
def compiled(spec: RuleSpec) -> Rule:
    check_choice(spec)
    if spec.every_seconds is not None:
        return interval_rule(spec, spec.every_seconds)
    if spec.cron is not None:
        return cron_rule(spec, spec.cron)
    return text_rule(spec, spec.rrule or "")


def check_choice(spec: RuleSpec) -> None:
    given = [name for name in ("rrule", "cron", "every_seconds") if getattr(spec, name) is not None]
    if len(given) != 1:
        raise BadRule(given[1] if given else "rrule", "exactly one of rrule, cron and every_seconds is needed")
    for name, values in (("dst_gap", get_args(Gap)), ("dst_fold", get_args(Fold))):
        value = getattr(spec, name)
        if value is not None and value not in values:
            raise BadRule(name, f"{name}: {value!r} is not one of {', '.join(values)}")
        if value is not None and spec.every_seconds is not None:
            raise BadRule(name, f"{name}: every_seconds is elapsed time, which has neither gaps nor folds")


def interval_rule(spec: RuleSpec, seconds: int) -> Rule:
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= MAX_INTERVAL_SECONDS:
        raise BadRule("every_seconds", f"every_seconds: {seconds!r} is not between 1 and {MAX_INTERVAL_SECONDS}")
    return IntervalRule(start_from_text(spec.start_at, spec.timezone).instant, timedelta(seconds=seconds))


def cron_rule(spec: RuleSpec, source: str) -> Rule:
    start = start_from_text(spec.start_at, spec.timezone)
    cron = read_cron(source)
    # From the day before: a clock that is put back just after the start may show that day again.
    grid = PeriodGrid(Months(cron.days_of_month), start.wall // DAY - 1, 1)
    pattern = TimesOnDays(DaysOfPeriods(grid), cron.times)
    clock = clock_for(spec, start, short=cron.shorter_than_a_day())
    return CalendarRule("cron", (Series(pattern, clock, start.at),))


def text_rule(spec: RuleSpec, source: str) -> Rule:
    text = read_text(source)
    if text.dtstart is not None:
        start = start_from_dtstart(text.dtstart, spec.timezone)
    else:
        start = start_from_text(spec.start_at, spec.timezone)
    excluded = excluded_dates(text.exdates, start)
    return CalendarRule(
        field="rrule",
        series=tuple(series_of(parts, spec, start) for parts in text.rules),
        count=text.rules[0].count if text.rules else None,
        extra=extra_dates(text.rdates, start, clock_for(spec, start, short=False), excluded),
        excluded=excluded,
    )


def series_of(parts: RuleParts, spec: RuleSpec, start: Start) -> Series:
    short = parts.freq in UNITS
    return Series(
        pattern_of(parts, start),
        clock_for(spec, start, short=short),
        start.at,
        last_at(parts.until, start.zone),
        walls=(None, None) if short else (start.wall, last_wall(parts.until)),
    )


def pattern_of(parts: RuleParts, start: Start) -> Pattern:
    start_day, start_second = divmod(start.wall, DAY)
    if parts.freq in UNITS:
        # From the day before: a clock that is put back just after the start may show that day again.
        return Ticks(parts, EveryDays(parts.days, start_day - 1), start.at)
    times = times_of_day(parts, start_second)
    if parts.freq == "DAILY":
        return TimesOnDays(EveryDays(parts.days, start_day, parts.interval), at_positions(times, parts.positions))
    grid = PeriodGrid(PERIODS[parts.freq](days_from_start(parts, start_day)), start_day, parts.interval)
    if parts.positions:
        return PositionsInPeriods(grid, times, parts.positions)
    return TimesOnDays(DaysOfPeriods(grid), times)


def days_from_start(parts: RuleParts, start_day: int) -> DayParts:
    """Return the day parts. A rule that names no day takes that of its start: in the week, month or year."""
    days, start = parts.days, date_of(start_day)
    if days.names_days():
        return days
    if parts.freq == "WEEKLY":
        return replace(days, weekday=((start.weekday(), 0),))
    if parts.freq == "YEARLY" and not days.month:
        return replace(days, month=(start.month,), month_day=(start.day,))
    return replace(days, month_day=(start.day,))


def clock_for(spec: RuleSpec, start: Start, *, short: bool) -> Clock:
    """Return the clock of a rule. By default a rule of a day or longer shifts gaps; a shorter one keeps even steps."""
    return Clock(
        start.zone, spec.dst_gap or ("skip" if short else "shift"), spec.dst_fold or ("both" if short else "first")
    )
