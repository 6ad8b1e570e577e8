"""Reads a cron expression in Quartz's dialect, and says the same as an RRULE. Pure.

Quartz has seconds in front and perhaps a year at the end. Its days of the week go from 1, Sunday, to 7. A field that
says nothing is `?`, and of the two fields for days one has to say nothing.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

MAX_EXPRESSION_CHARACTERS = 500

_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_WEEKDAY_NAMES = {name: place for place, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), start=1)}
_MONTH_NAMES = {
    name: place
    for place, name in enumerate(
        ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"), start=1
    )
}
_ITEM = re.compile(r"(?:\*|(?P<first>[A-Z]{3}|\d{1,2})(?:-(?P<last>[A-Z]{3}|\d{1,2}))?)(?:/(?P<step>\d{1,2}))?")
_COUNTED_DAY = re.compile(r"(?P<day>[A-Z]{3}|\d)(?:#(?P<place>[1-5])|(?P<last>L))")
_FROM_THE_END = re.compile(r"L(?:-(?P<before>\d{1,2}))?")


def as_rrule(expression: str, until: datetime | None = None) -> str:
    """Return the rule. Raises ValueError, whose text names the field of the expression."""
    fields = expression.upper().split() if len(expression) <= MAX_EXPRESSION_CHARACTERS else []
    if len(fields) not in {6, 7}:
        raise ValueError(
            "expected the six fields of Quartz, second, minute, hour, day of month, month, day of week, or seven with "
            f"the year, in at most {MAX_EXPRESSION_CHARACTERS} characters"
        )
    if len(fields) == 7 and fields[6] not in {"*", "?"}:
        raise ValueError(f"year: {fields[6][:40]!r} is not understood; only * is")
    second, minute, hour, day, month, weekday = fields[:6]
    seconds = _numbers("second", second, 0, 59)
    minutes, hours = _numbers("minute", minute, 0, 59), _numbers("hour", hour, 0, 23)
    parts = {
        "BYMONTH": _numbers("month", month, 1, 12, _MONTH_NAMES),
        **_days(day, weekday),
        "BYHOUR": hours,
        "BYMINUTE": minutes,
        "BYSECOND": seconds or [str(number) for number in range(60)],
    }
    if any(each[:1] in {"+", "-"} for each in parts.get("BYDAY") or ()):
        frequency = "MONTHLY"
        parts["BYHOUR"] = hours or [str(number) for number in range(24)]
        parts["BYMINUTE"] = minutes or [str(number) for number in range(60)]
    elif hours is not None:
        frequency = "DAILY"
        parts["BYMINUTE"] = minutes or [str(number) for number in range(60)]
    else:
        frequency = "MINUTELY" if minutes is None else "HOURLY"
    lists = [f"{name}={','.join(values)}" for name, values in parts.items() if values is not None]
    end = [] if until is None else [f"UNTIL={until.astimezone(UTC):%Y%m%dT%H%M%SZ}"]
    return ";".join([f"FREQ={frequency}", *lists, *end])


def _numbers(field: str, text: str, low: int, high: int, names: Mapping[str, int] | None = None) -> list[str] | None:
    """Return the numbers that a field names, in order; None if it names all."""
    found: set[int] = set()
    for item in text.split(","):
        read = _ITEM.fullmatch(item)
        if read is None:
            raise ValueError(f"{field}: {item[:40]!r} is not understood")
        first = low if read["first"] is None else _number(field, read["first"], low, high, names or {})
        last = high if read["last"] is None else _number(field, read["last"], low, high, names or {})
        if read["first"] is not None and read["last"] is None and read["step"] is None:
            last = first
        step = int(read["step"] or 1)
        if step == 0:
            raise ValueError(f"{field}: the step of {item[:40]!r} is 0")
        # A range may go over the end: FRI-MON, 22-2.
        span = (last - first) % (high - low + 1)
        found.update(low + (first - low + passed) % (high - low + 1) for passed in range(0, span + 1, step))
    return None if len(found) == high - low + 1 else [str(number) for number in sorted(found)]


def _number(field: str, text: str, low: int, high: int, names: Mapping[str, int]) -> int:
    number = names.get(text, int(text) if text.isdecimal() else -1)
    if not low <= number <= high:
        raise ValueError(f"{field}: {text[:40]!r} is not between {low} and {high}")
    return number


def _days(day: str, weekday: str) -> dict[str, list[str] | None]:
    says_nothing = {"*", "?"}
    if day not in says_nothing and weekday not in says_nothing:
        raise ValueError("day of month: cannot be given together with a day of week; one of them must be ?")
    if weekday not in says_nothing:
        return {"BYDAY": _weekdays(weekday)}
    if day in says_nothing:
        return {}
    from_the_end = _FROM_THE_END.fullmatch(day)
    if from_the_end is None:
        return {"BYMONTHDAY": _numbers("day of month", day, 1, 31)}
    return {"BYMONTHDAY": [f"-{int(from_the_end['before'] or 0) + 1}"]}


def _weekdays(text: str) -> list[str] | None:
    if counted := _COUNTED_DAY.fullmatch(text):
        number = _number("day of week", counted["day"], 1, 7, _WEEKDAY_NAMES)
        return [f"{'-1' if counted['last'] else '+' + counted['place']}{_WEEKDAYS[number - 1]}"]
    numbers = _numbers("day of week", "7" if text == "L" else text, 1, 7, _WEEKDAY_NAMES)
    return None if numbers is None else [_WEEKDAYS[int(number) - 1] for number in numbers]
