"""Reads cron expressions: five fields, or an @name. cronsim parses them and tells which days match.

The matching days of a month depend only on its length and first weekday, so each kind of month is matched once. The
iterator of cronsim is not used: it treats gaps and folds in its own way, steps hour by hour, and stops after 50 years.
"""

import re
from calendar import monthrange
from datetime import date
from functools import lru_cache

from cronsim import CronSim, CronSimError

from shared.errors import BadRule
from shared.recurrence.arithmetic import EPOCH

MAX_CRON_LENGTH = 500
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
CRON_FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")


_VALUES = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, or L for the last",
    "month": "1 to 12, or JAN to DEC",
    "day-of-week": "0 to 7, or SUN to SAT",
}


class Cron:
    """Tells the days and times that a cron expression names."""

    __slots__ = ("days_by_kind", "matcher", "times")

    def __init__(self, matcher: CronSim) -> None:
        self.matcher = matcher
        self.times = tuple(sorted(hour * 3600 + minute * 60 for hour in matcher.hours for minute in matcher.minutes))
        self.days_by_kind: dict[tuple[int, int], tuple[int, ...]] = {}

    def shorter_than_a_day(self) -> bool:
        """Return whether the rule is an interval, not a time of day: as in Debian's cron, a star in minute or hour."""
        minute, hour = self.matcher.parts[1:3]
        return minute.startswith("*") or hour.startswith("*") or len(self.matcher.hours) == 24

    def days_of_month(self, year: int, month: int) -> tuple[int, ...]:
        """Return the days of the month that match; 0 is the first."""
        if month not in self.matcher.months:
            return ()
        kind = monthrange(year, month)
        days = self.days_by_kind.get(kind)
        if days is None:
            matches = (day for day in range(kind[1]) if self.matcher.match_day(date(year, month, day + 1)))
            days = self.days_by_kind[kind] = tuple(matches)
        return days


@lru_cache(maxsize=512)
def read_cron(text: str) -> Cron:
    expression = NICKNAMES.get(text.strip().lower(), text.strip()) if len(text) <= MAX_CRON_LENGTH else ""
    if expression.startswith("@"):
        raise BadRule("cron", f"cron: {expression[:40]} is not one of {', '.join(NICKNAMES)}")
    fields = expression.upper().split()
    if len(fields) != len(CRON_FIELDS):
        seconds = "; six are given: seconds are not supported" if len(fields) == len(CRON_FIELDS) + 1 else ""
        limit = f"at most {MAX_CRON_LENGTH} characters"
        raise BadRule("cron", f"cron: expected the five fields {', '.join(CRON_FIELDS)}, {limit}{seconds}")
    # Sunday is 0 and 7: FRI-SUN is 5-7.
    fields[4] = re.sub(r"(?<!SUN)-SUN", "-7", fields[4])
    try:
        return Cron(CronSim(" ".join(fields), EPOCH))
    except CronSimError:
        raise BadRule("cron", find_bad_field(fields)) from None


def find_bad_field(fields: list[str]) -> str:
    """Return which field is wrong: the one that cronsim refuses alone."""
    for position, (name, field) in enumerate(zip(CRON_FIELDS, fields, strict=True)):
        alone = ["*"] * position + [field] + ["*"] * (len(CRON_FIELDS) - position - 1)
        try:
            CronSim(" ".join(alone), EPOCH)
        except CronSimError:
            return f"{name}: {field[:40]!r} is not understood; {_meaning(name, field)}"
    return f"day-of-month: no month of {fields[3][:40]!r} has a day {fields[2][:40]!r}"


def _meaning(name: str, field: str) -> str:
    """Return what the field may be. A range from high to low is the mistake that the limits do not explain."""
    if "?" in field:
        return "any is *"
    if re.fullmatch(r"(\d+)-(\d+)", field):
        return f"it is {_VALUES[name]}, and a range goes from low to high"
    return f"it is {_VALUES[name]}"
