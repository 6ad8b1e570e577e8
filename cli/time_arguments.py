"""Parses time arguments: an instant, or a distance from now. Pure."""

import re
from datetime import UTC, datetime, timedelta

from shared.contract.fields import parse_date_time

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as 90s, 10m, 1h30m or 2d."""
    total, rest = timedelta(), text
    while match := _DURATION.match(rest):
        total += timedelta(**{_UNITS[match[2]]: float(match[1])})
        rest = rest[match.end() :]
    if rest or not text:
        raise ValueError(f"{text!r} is not a duration such as 90s, 10m, 1h30m or 2d")
    return total


def parse_moment(text: str, now: datetime) -> datetime:
    """Parse an instant with an offset, `now`, or a distance from now such as `+2h` or `-30m`."""
    if text == "now":
        return now
    if text[:1] in {"+", "-"}:
        distance = parse_duration(text[1:])
        return now + distance if text[0] == "+" else now - distance
    try:
        moment = parse_date_time(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an instant such as 2026-07-10T09:00:00Z, now, +2h or -30m") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} needs an offset, such as {text}Z")
    return moment.astimezone(UTC)
