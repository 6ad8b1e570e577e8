"""cron: five fields and the @names, matched on the wall clock by cronsim, at gaps and folds by our own rules."""

from copy import copy
from datetime import timedelta

from cronsim import CronSim, CronSimError

from shared.recurrence.bad_rule import BadRule
from shared.recurrence.seconds import EPOCH, NEVER, wall_of
from shared.recurrence.work import Work

MAX_TEXT = 500
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


class CronPattern:
    """The wall times of a cron expression. It has no memory: every search begins with a fresh copy."""

    __slots__ = ("matcher",)

    def __init__(self, text: str) -> None:
        self.matcher = read_cron(text)

    def shorter_than_a_day(self) -> bool:
        """As Debian's cron sees it: a star in the minute or the hour is an interval, anything else a time of day."""
        minute, hour = self.matcher.parts[1:3]
        return minute.startswith("*") or hour.startswith("*") or len(self.matcher.hours) == 24

    def seek(self, low: int, high: int, offset: int, work: Work) -> int:
        work.spend()
        search = copy(self.matcher)
        # Marked as UTC, for which cronsim has no rules of its own about gaps and folds.
        search.dt = EPOCH + timedelta(seconds=low - 1)
        try:
            return wall_of(next(search))
        except StopIteration:
            # Nothing for fifty years.
            return NEVER


def read_cron(text: str) -> CronSim:
    expression = NAMES.get(text.strip().lower(), text.strip()) if len(text) <= MAX_TEXT else ""
    if expression.startswith("@"):
        raise BadRule("cron", f"cron: {expression[:40]} is not one of {', '.join(NAMES)}")
    fields = expression.upper().split()
    if len(fields) != len(FIELDS):
        raise BadRule(
            "cron", f"cron: expected five fields ({', '.join(FIELDS)}) of at most {MAX_TEXT} characters in all"
        )
    # Sunday ends the week as well as it begins it: FRI-SUN is 5-7.
    fields[4] = fields[4].replace("-SUN", "-7")
    try:
        return CronSim(" ".join(fields), EPOCH)
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
