"""Reads the parts of one RRULE and checks each by itself. Errors name the part. `part_checks` checks them together."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from shared.errors import BadRule

if TYPE_CHECKING:
    from shared.recurrence.ical import Moment

FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# The values of one BYxxx list. No list in the RFC is longer, except by repetition.
MAX_LIST_VALUES = 64

# The lowest and highest value of each list, and whether it may count from the end.
LISTS = {
    "BYSECOND": (0, 60, False),
    "BYMINUTE": (0, 59, False),
    "BYHOUR": (0, 23, False),
    "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True),
    "BYWEEKNO": (1, 53, True),
    "BYMONTH": (1, 12, False),
    "BYSETPOS": (1, 366, True),
}
NUMBERS = {"INTERVAL": (1, 1_000_000_000), "COUNT": (1, 1_000_000_000)}
CHOICES: dict[str, tuple[str, ...]] = {
    "FREQ": FREQUENCIES,
    "WKST": WEEKDAYS,
    "SKIP": ("OMIT", "BACKWARD", "FORWARD"),
    "RSCALE": ("GREGORIAN",),
}
BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
WHOLE_NUMBER = re.compile(r"[+-]?\d{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class DayParts:
    """The parts that choose days, without the frequency. Caches of expanded months and years use it as their key."""

    month: tuple[int, ...] = ()
    week_number: tuple[int, ...] = ()
    year_day: tuple[int, ...] = ()
    month_day: tuple[int, ...] = ()
    # Weekday (0 is Monday), and which one in the month or year; 0 is every one.
    weekday: tuple[tuple[int, int], ...] = ()
    week_start: int = 0
    skip: Literal["OMIT", "BACKWARD", "FORWARD"] = "OMIT"

    def limits(self) -> bool:
        """Return whether the parts leave out any day."""
        return bool(self.month or self.week_number or self.year_day or self.month_day or self.weekday)

    def names_days(self) -> bool:
        """Return whether the parts name days in the month or year; otherwise DTSTART gives the day."""
        return bool(self.week_number or self.year_day or self.month_day or self.weekday)


@dataclass(frozen=True, slots=True)
class RuleParts:
    freq: str
    interval: int = 1
    count: int | None = None
    until: "Moment | None" = None
    days: DayParts = field(default_factory=DayParts)
    hour: tuple[int, ...] = ()
    minute: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()


def read_parts(text: str, read_until: Callable[[str], "Moment"]) -> RuleParts:
    given = split_parts(text)
    if "FREQ" not in given:
        raise BadRule("rrule", "FREQ: missing")
    choices = {name: read_choice(name, given[name]) for name in CHOICES if name in given}
    numbers = {name: read_number(name, given[name], *NUMBERS[name]) for name in NUMBERS if name in given}
    lists = {name: read_list(name, given[name]) if name in given else () for name in LISTS}
    return RuleParts(
        freq=choices["FREQ"],
        interval=numbers.get("INTERVAL", 1),
        count=numbers.get("COUNT"),
        until=read_until(given["UNTIL"]) if "UNTIL" in given else None,
        days=DayParts(
            month=lists["BYMONTH"],
            week_number=lists["BYWEEKNO"],
            year_day=lists["BYYEARDAY"],
            month_day=lists["BYMONTHDAY"],
            weekday=read_weekdays(given["BYDAY"]) if "BYDAY" in given else (),
            week_start=WEEKDAYS.index(choices.get("WKST", "MO")),
            skip=choices.get("SKIP", "OMIT"),  # type: ignore[arg-type]  # one of CHOICES["SKIP"]
        ),
        hour=lists["BYHOUR"],
        minute=lists["BYMINUTE"],
        # RFC 5545 3.3.12: without leap seconds, second 60 is read as 59.
        second=tuple(sorted({min(second, 59) for second in lists["BYSECOND"]})),
        positions=lists["BYSETPOS"],
    )


def split_parts(text: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for piece in text.upper().split(";"):
        name, equals, value = (side.strip() for side in piece.partition("="))
        if not equals or not value:
            raise BadRule("rrule", f"{name[:40] or 'RRULE'}: expected NAME=VALUE, found {piece.strip()[:40]!r}")
        if name not in LISTS and name not in NUMBERS and name not in CHOICES and name not in {"UNTIL", "BYDAY"}:
            raise BadRule("rrule", f"{name[:40]}: not a part of a recurrence rule")
        if name in given:
            raise BadRule("rrule", f"{name}: given twice")
        given[name] = value
    return given


def read_choice(name: str, text: str) -> str:
    if text not in CHOICES[name]:
        raise BadRule("rrule", f"{name}: {text[:40]} is not one of {', '.join(CHOICES[name])}")
    return text


def read_list(name: str, text: str) -> tuple[int, ...]:
    low, high, from_the_end = LISTS[name]
    values = {read_number(name, item.strip(), low, high, from_the_end=from_the_end) for item in items_of(name, text)}
    return tuple(sorted(values))


def read_number(name: str, text: str, low: int, high: int, *, from_the_end: bool = False) -> int:
    if not WHOLE_NUMBER.fullmatch(text):
        raise BadRule("rrule", f"{name}: {text[:40]!r} is not a whole number")
    number = int(text)
    if low <= number <= high or (from_the_end and -high <= number <= -low):
        return number
    bounds = f"{-high} and {-low}" if from_the_end and number < 0 else f"{low} and {high}"
    raise BadRule("rrule", f"{name}: {number} is not between {bounds}")


def read_weekdays(text: str) -> tuple[tuple[int, int], ...]:
    weekdays = set()
    for item in items_of("BYDAY", text):
        found = BYDAY.fullmatch(item.strip())
        if not found:
            raise BadRule("rrule", f"BYDAY: {item.strip()[:40]!r} is not a weekday like MO, 1MO or -1FR")
        nth = int(found[1]) if found[1] else 0
        if found[1] and not 1 <= abs(nth) <= 53:
            raise BadRule("rrule", f"BYDAY: {nth} is not between 1 and 53")
        weekdays.add((WEEKDAYS.index(found[2]), nth))
    return tuple(sorted(weekdays))


def items_of(name: str, text: str) -> list[str]:
    items = text.split(",")
    if len(items) > MAX_LIST_VALUES:
        raise BadRule("rrule", f"{name}: more than {MAX_LIST_VALUES} values")
    return items
