"""Rules in words, such as `every weekday at 09:00 Europe/Berlin`. What has no short words is told as it was written: a
sentence that says less than the rule would be wrong. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from cronsim import CronSim, CronSimError

from shared.contract.fields import parse_date_time
from shared.recurrence.zones import load_zone

MAX_TIMES = 4
MAX_RULE_LENGTH = 200
DAYS = {
    "MO": "Monday", "TU": "Tuesday", "WE": "Wednesday", "TH": "Thursday", "FR": "Friday", "SA": "Saturday",
    "SU": "Sunday",
}  # fmt: skip
WORKING_DAYS = frozenset({"MO", "TU", "WE", "TH", "FR"})
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_UNITS = {"SECONDLY": "second", "MINUTELY": "minute", "HOURLY": "hour", "DAILY": "day", "WEEKLY": "week",
          "MONTHLY": "month", "YEARLY": "year"}  # fmt: skip
_ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last", -2: "second to last"}
# The parts that these words can tell; another one makes the rule be told as it was written.
_TOLD = frozenset(
    {"FREQ", "INTERVAL", "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND", "BYMONTHDAY", "BYMONTH", "COUNT", "UNTIL", "WKST"}
)
_ORDINAL_DAY = re.compile(r"([+-]?\d+)?(MO|TU|WE|TH|FR|SA|SU)")
_ANY_DAY_OF_MONTH_AND_MONTH = "* *"


def describe_rule(
    rrule: str | None, cron: str | None, every_seconds: int | None, timezone: str | None, start_at: str | None = None
) -> str:
    """Return the rule in words; `once` if there is none."""
    if every_seconds is not None:
        return f"every {_interval(every_seconds)}"
    zone = f" {timezone}" if timezone else " UTC"
    if cron is not None:
        return _cron_in_words(cron) + zone
    if rrule is None:
        return "once"
    words = _rrule_in_words(rrule, _local_start(start_at, timezone))
    return words + zone if words is not None else rrule[:MAX_RULE_LENGTH]


def _interval(seconds: int) -> str:
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % size == 0:
            return _counted(seconds // size, unit)
    return _counted(seconds, "second")


def _counted(number: int, unit: str) -> str:
    return unit if number == 1 else f"{number} {unit}s"


def _cron_in_words(cron: str) -> str:
    parts = cron.split()
    if cron.startswith("@"):
        return {"@hourly": "every hour", "@daily": "every day at 00:00", "@midnight": "every day at 00:00"}.get(
            cron.lower(), cron
        )
    if len(parts) != 5:
        return cron[:MAX_RULE_LENGTH]
    minute, hour, *days, weekday = parts
    if minute.isdigit() and hour.isdigit() and " ".join(days) == _ANY_DAY_OF_MONTH_AND_MONTH:
        at = f"at {int(hour):02}:{int(minute):02}"
        if weekday == "*":
            return f"every day {at}"
        if weekday.upper() in {"1-5", "MON-FRI"}:
            return f"every weekday {at}"
    try:
        words = str(CronSim(cron, datetime(2026, 1, 1)).explain())  # noqa: DTZ001 - a start that is not used
    except (CronSimError, ValueError):
        return cron[:MAX_RULE_LENGTH]
    return words[0].lower() + words[1:]


def _rrule_in_words(text: str, start: datetime | None) -> str | None:
    line = text.strip().removeprefix("RRULE:")
    if "\n" in line or ":" in line:
        return None  # RDATE, EXDATE, DTSTART
    try:
        parts = dict(part.split("=", 1) for part in line.upper().split(";") if part)
        return _parts_in_words(parts, start) if parts.keys() <= _TOLD else None
    except (KeyError, ValueError):
        return None


def _parts_in_words(parts: Mapping[str, str], start: datetime | None) -> str | None:
    frequency, interval = parts["FREQ"], int(parts.get("INTERVAL", "1"))
    days = _days(parts, frequency, start)
    if days is None:
        return None
    every = f"every {_counted(interval, _UNITS[frequency])}"
    if frequency in {"DAILY", "WEEKLY"} and interval == 1 and parts.get("BYDAY"):
        every = (
            "every weekday" if set(parts["BYDAY"].split(",")) == WORKING_DAYS else f"every {days.removeprefix('on ')}"
        )
        days = ""
    if months := parts.get("BYMONTH"):
        days = f"{days} in {_listed([MONTHS[int(number) - 1] for number in months.split(',')])}".strip()
    times = _times(parts, frequency, start)
    return None if times is None else " ".join(filter(None, (every, days, times, _end(parts))))


def _days(parts: Mapping[str, str], frequency: str, start: datetime | None) -> str | None:
    """Return which days, or None if that takes too many words."""
    if given := parts.get("BYDAY"):
        return _weekdays(given.split(","), frequency) if "BYMONTHDAY" not in parts else None
    if given := parts.get("BYMONTHDAY"):
        return "on " + _listed([_day_of_month(int(day)) for day in given.split(",")])
    if frequency not in {"WEEKLY", "MONTHLY", "YEARLY"}:
        return ""
    return _day_of_start(start, frequency, months_are_given="BYMONTH" in parts) if start is not None else None


def _weekdays(days: Sequence[str], frequency: str) -> str | None:
    found = [_ORDINAL_DAY.fullmatch(day) for day in days]
    if not all(found):
        return None
    return "on " + _listed([_weekday(match[1], match[2], frequency) for match in found if match])


def _day_of_start(start: datetime, frequency: str, *, months_are_given: bool) -> str:
    if frequency == "WEEKLY":
        return f"on {start:%A}"
    month = f" {MONTHS[start.month - 1]}" if frequency == "YEARLY" and not months_are_given else ""
    return f"on {start.day}{month}" if month else f"on day {start.day}"


def _weekday(ordinal: str | None, day: str, frequency: str) -> str:
    if ordinal is None:
        return DAYS[day]
    if frequency not in {"MONTHLY", "YEARLY"}:
        raise ValueError("an ordinal goes with months and years")
    return f"the {_ORDINALS[int(ordinal)]} {DAYS[day]}"


def _day_of_month(day: int) -> str:
    return f"day {day}" if day > 0 else f"the {_ORDINALS[day]} day"


def _times(parts: Mapping[str, str], frequency: str, start: datetime | None) -> str | None:
    if frequency in {"SECONDLY", "MINUTELY", "HOURLY"}:
        return "" if not parts.keys() & {"BYHOUR", "BYMINUTE", "BYSECOND"} else None
    given = [parts.get(name) for name in ("BYHOUR", "BYMINUTE", "BYSECOND")]
    if start is None and None in given:
        return None
    own = (start.hour, start.minute, start.second) if start else (0, 0, 0)
    hours, minutes, seconds = (
        [int(number) for number in text.split(",")] if text is not None else [number]
        for text, number in zip(given, own, strict=True)
    )
    if len(hours) * len(minutes) * len(seconds) > MAX_TIMES:
        return None
    times = [f"{h:02}:{m:02}" + (f":{s:02}" if s else "") for h in hours for m in minutes for s in seconds]
    return "at " + _listed(times)


def _end(parts: Mapping[str, str]) -> str:
    if "COUNT" in parts:
        return f"({parts['COUNT']} times)"
    until = parts.get("UNTIL", "")
    return f"until {until[:4]}-{until[4:6]}-{until[6:8]}" if until else ""


def _local_start(text: str | None, timezone: str | None) -> datetime | None:
    """Return the wall time at which the rule starts, in its zone; None if that is not known."""
    try:
        start = parse_date_time(text) if text else None
        return start.astimezone(load_zone(timezone or "UTC")) if start is not None and start.tzinfo else start
    except ValueError:
        return None


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
