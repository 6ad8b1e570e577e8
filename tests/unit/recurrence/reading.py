"""Short notations: lists of occurrences as people and RFC 5545 write them, and the occurrences of a rule."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from shared.recurrence import Occurrence, RuleSpec, compile_rule

ZONES = {"EST": timezone(timedelta(hours=-5)), "EDT": timezone(timedelta(hours=-4))}
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def list_times(limit: int = 1000, **spec: Any) -> list[str]:
    """Return the first occurrences of a rule as texts, in UTC without the offset, with seconds unless they are 0."""
    return [short(occurrence.at) for occurrence in walk(limit, **spec)]


def walk(limit: int = 1000, **spec: Any) -> list[Occurrence]:
    rule = compile_rule(RuleSpec(**spec))
    found: list[Occurrence] = []
    occurrence = rule.first()
    while occurrence is not None and len(found) < limit:
        found.append(occurrence)
        occurrence = rule.next_after(occurrence)
    return found


def short(at: datetime) -> str:
    assert at.tzinfo is UTC
    return at.strftime("%Y-%m-%d %H:%M" + (":%S" if at.second else ""))


def listed(text: str) -> list[str]:
    """'1997 EDT: Sep 2-4; Oct 1, 15 | 1998 EST: Jan 1' at nine in the morning, as `list_times` returns it."""
    found = []
    for block in text.split("|"):
        head, _, dates = block.partition(":")
        year, zone = head.split()
        for month_and_days in dates.split(";"):
            month, days = month_and_days.split(maxsplit=1)
            for day in days_of(days):
                local = datetime(int(year), MONTHS.index(month) + 1, day, 9, tzinfo=ZONES[zone])
                found.append(short(local.astimezone(UTC)))
    return found


def days_of(text: str) -> list[int]:
    found: list[int] = []
    for item in text.split(","):
        bounds = [int(number) for number in re.findall(r"\d+", item)]
        found += range(bounds[0], bounds[-1] + 1)
    return found
