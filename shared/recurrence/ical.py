"""Reads the text of a rule: unfolds its lines, splits them into properties and converts their dates into numbers.

The text is one RRULE ("FREQ=DAILY"), or lines of DTSTART, RRULE, RDATE and EXDATE as in RFC 5545. The result depends on
the text alone, so a bounded cache keeps it for the next job with the same text.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from shared.errors import BadRule
from shared.recurrence.arithmetic import wall_of
from shared.recurrence.part_checks import check_parts
from shared.recurrence.parts import RuleParts, read_parts

MAX_RRULE_LENGTH = 32_768
MAX_RRULES = 4
MAX_DATES = 1_000

FOLD = re.compile(r"\r?\n[ \t]")
MOMENT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or date-time of the text: its wall time, and in which zone that is."""

    wall: int
    kind: Literal["utc", "local", "date"]
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class RecurrenceText:
    rules: tuple[RuleParts, ...]
    rdates: tuple[Moment, ...]
    exdates: tuple[Moment, ...]
    dtstart: Moment | None


def dtstart_in(text: str) -> bool:
    """Return whether the text has a DTSTART, which then replaces `start_at`."""
    return any(re.match(r"DTSTART\s*[:;]", line, re.IGNORECASE) for line in content_lines(text[:MAX_RRULE_LENGTH]))


@lru_cache(maxsize=256)
def read_text(text: str) -> RecurrenceText:
    if len(text) > MAX_RRULE_LENGTH:
        raise BadRule("rrule", f"rrule: the text is longer than {MAX_RRULE_LENGTH} characters")
    rules: list[RuleParts] = []
    dates: dict[str, list[Moment]] = {"DTSTART": [], "RDATE": [], "EXDATE": []}
    for line in content_lines(text):
        name, parameters, value = split_line(line)
        if name == "RRULE":
            rules.append(read_parts(value, read_until))
            check_parts(rules[-1])
        elif name in dates:
            dates[name] += read_dates(name, parameters, value)
        elif name == "EXRULE":
            raise BadRule("rrule", "EXRULE: not supported, RFC 5545 has removed it; use EXDATE")
        else:
            raise BadRule("rrule", f"{name[:40]}: not one of DTSTART, RRULE, RDATE, EXDATE")
    check_amounts(rules, dates)
    return RecurrenceText(
        tuple(rules), tuple(dates["RDATE"]), tuple(dates["EXDATE"]), dates["DTSTART"][0] if dates["DTSTART"] else None
    )


def check_amounts(rules: list[RuleParts], dates: dict[str, list[Moment]]) -> None:
    if not rules and not dates["RDATE"]:
        raise BadRule("rrule", "RRULE: missing, there is neither an RRULE nor an RDATE")
    if len(rules) > MAX_RRULES:
        raise BadRule("rrule", f"RRULE: more than {MAX_RRULES} of them")
    if len(rules) > 1 and any(rule.count is not None for rule in rules):
        raise BadRule("rrule", "COUNT: only where there is a single RRULE")
    if len(dates["DTSTART"]) > 1:
        raise BadRule("rrule", "DTSTART: given more than once")
    for name in ("RDATE", "EXDATE"):
        if len(dates[name]) > MAX_DATES:
            raise BadRule("rrule", f"{name}: more than {MAX_DATES} dates")


def content_lines(text: str) -> list[str]:
    return [line.strip() for line in FOLD.sub("", text.strip()).splitlines() if line.strip()]


def split_line(line: str) -> tuple[str, list[str], str]:
    head, colon, value = line.partition(":")
    if not colon:
        return "RRULE", [], line
    name, *parameters = head.split(";")
    name = name.strip().upper()
    if name == "RRULE" and parameters:
        raise BadRule("rrule", f"RRULE: has no parameter {parameters[0][:40]}")
    return name, parameters, value


def read_dates(name: str, parameters: list[str], value: str) -> list[Moment]:
    zone, only_dates = None, False
    for parameter in parameters:
        key, _, setting = (piece.strip() for piece in parameter.partition("="))
        if key.upper() == "TZID":
            zone = setting.strip('"')
        elif key.upper() == "VALUE" and setting.upper() in {"DATE", "DATE-TIME"}:
            only_dates = setting.upper() == "DATE"
        else:
            raise BadRule("rrule", f"{name}: {parameter[:40]} is not supported")
    moments = [read_moment(name, item, zone) for item in value.split(",")]
    if zone is not None and any(moment.kind == "utc" for moment in moments):
        raise BadRule("rrule", f"{name}: a time in UTC has no TZID")
    if only_dates and any(moment.kind != "date" for moment in moments):
        raise BadRule("rrule", f"{name}: VALUE=DATE, but a time is given")
    return moments


def read_until(value: str) -> Moment:
    return read_moment("UNTIL", value, None)


def read_moment(part: str, text: str, zone: str | None) -> Moment:
    bad = BadRule("rrule", f"{part}: {text.strip()[:40]!r} is not a date or date-time")
    found = MOMENT.fullmatch(text.strip().upper())
    if not found:
        raise bad
    try:
        year, month, day, hour, minute, second = (int(number or 0) for number in found.groups()[:6])
        # RFC 5545 3.3.12: without leap seconds, second 60 is read as 59.
        read = datetime(year, month, day, hour, minute, 59 if second == 60 else second, tzinfo=UTC)
    except ValueError:
        raise bad from None
    if found[4] is None:
        return Moment(wall_of(read), "date", zone)
    if found[7]:
        return Moment(wall_of(read), "utc")
    return Moment(wall_of(read), "local", zone)
