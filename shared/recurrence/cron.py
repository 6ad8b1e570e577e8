"""cron: five fields and the @names. cronsim reads them and says which days match; the rest is as for any other rule.

The days of a month depend on its length and first weekday alone, so each kind of month is matched once. cronsim's own
walk is not used: it has its own idea of gaps and folds, steps hour by hour, and gives up after fifty years.
"""

import re
from calendar import monthrange
from datetime import date
from functools import lru_cache

from cronsim import CronSim, CronSimError

from shared.errors import BadRule
from shared.recurrence.arithmetic import EPOCH

MAX_CRON_LENGTH = 500
NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")


class Cron:
    """The days and times of a cron expression."""

    __slots__ = ("days_by_kind", "matcher", "times")

    def __init__(self, matcher: CronSim) -> None:
        self.matcher = matcher
        self.times = tuple(sorted(hour * 3600 + minute * 60 for hour in matcher.hours for minute in matcher.minutes))
        self.days_by_kind: dict[tuple[int, int], tuple[int, ...]] = {}

    def shorter_than_a_day(self) -> bool:
        """As Debian's cron sees it: a star in the minute or the hour is an interval, anything else a time of day."""
        minute, hour = self.matcher.parts[1:3]
        return minute.startswith("*") or hour.startswith("*") or len(self.matcher.hours) == 24

    def days_of_month(self, year: int, month: int) -> tuple[int, ...]:
        """The days that match, counted from 0 at the first."""
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
    expression = NAMES.get(text.strip().lower(), text.strip()) if len(text) <= MAX_CRON_LENGTH else ""
    if expression.startswith("@"):
        raise BadRule("cron", f"cron: {expression[:40]} is not one of {', '.join(NAMES)}")
    fields = expression.upper().split()
    if len(fields) != len(FIELDS):
        raise BadRule(
            "cron", f"cron: expected the five fields {', '.join(FIELDS)}, at most {MAX_CRON_LENGTH} characters"
        )
    # Sunday ends the week as well as it begins it: FRI-SUN is 5-7.
    fields[4] = re.sub(r"(?<!SUN)-SUN", "-7", fields[4])
    try:
        return Cron(CronSim(" ".join(fields), EPOCH))
    except CronSimError:
        raise BadRule("cron", blame(fields)) from None


def blame(fields: list[str]) -> str:
    """Which field is at fault: the one that fails alone."""
    for position, (name, field) in enumerate(zip(FIELDS, fields, strict=True)):
        alone = ["*"] * position + [field] + ["*"] * (len(FIELDS) - position - 1)
        try:
            CronSim(" ".join(alone), EPOCH)
        except CronSimError:
            return f"{name}: {field[:40]!r} is not understood"
    return f"day-of-month: no month of {fields[3][:40]!r} has a day {fields[2][:40]!r}"
