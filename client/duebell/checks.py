"""What the client finds wrong in a request by itself, before it is sent, in words for the developer. Pure.

The functions raise ValueError; pydantic puts the name of the field in front. What depends on a rule's meaning is left
to Duebell's verdict.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d(?P<time>[Tt ]\d\d:\d\d(?P<seconds>:\d\d([.]\d{1,9})?)?(?P<offset>[Zz]|[+-]\d\d:[0-5]\d)?)?",
    re.ASCII,
)
_LABEL_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,62}", re.ASCII)
MAX_LABELS = 16
_EXAMPLE = "2030-01-31T09:00:00Z, or 2030-01-31T09:00:00 with a timezone"
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven")
# Names that zoneinfo can load, and that mean another zone on every machine.
_NOT_ZONES = ("right/", "posix/", "localtime", "posixrules")

# Shorter names are abbreviations, all of which look alike.
MIN_LENGTH_TO_GUESS = 5
# How much an unknown field must look like a known one to be taken for it.
LIKENESS = 0.75

# By the last part of the field's name: what is taken besides text, and what its pattern means.
_TYPES = {
    "at": "a datetime or text",
    "start_at": "a datetime or text",
    "timezone": "a name such as Europe/Berlin, or a ZoneInfo",
}
_PATTERNS = {
    "topic": "must be words of A-Z, a-z, 0-9, _ and - joined by dots, such as invoices.reminder",
    "url": "must start with http:// or https://",
    "secret": "must be a name of up to 100 letters, digits, _ and -",
}


def check_id(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain NUL")
    return text


def check_labels(labels: dict[str, str]) -> dict[str, str]:
    if len(labels) > MAX_LABELS:
        raise ValueError(f"there are {len(labels)}, and a job has {MAX_LABELS} at most")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise ValueError(
                f"the key {key[:63]!r} must have 1 to 63 of A-Z, a-z, 0-9, _, ., / and -, and begin with a letter or a "
                "digit"
            )
        if not value.isprintable():
            raise ValueError(f"the value of {key!r} must not contain line breaks or other control characters")
    return labels


def check_zone(name: str) -> str:
    if not _is_zone(name):
        meant = _zone_like(name)
        hint = f"did you mean {meant}?" if meant else "it is UTC, or a place such as Europe/Berlin"
        raise ValueError(f"{name[:64]!r} is not an IANA time zone; {hint}")
    return name


def check_moment(text: str) -> str:
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:64]!r} is not a date and time such as {_EXAMPLE}")
    if found["time"] is None:
        raise ValueError(f"the time of day is missing: write it as in {_EXAMPLE}")
    if found["seconds"] is None:
        raise ValueError(f"the seconds are missing: write it as in {_EXAMPLE}")
    if found["time"][1:3] == "24":  # which newer versions of Python would read
        raise ValueError("is not a real date and time: hours are 00 to 23, midnight is 00:00 of the next day")
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:  # its text differs between versions of Python
        raise ValueError(
            "is not a real date and time: a month, day, hour, minute, second or offset is out of range"
        ) from None
    return text


def has_offset(moment: str) -> bool:
    """Tell whether a text that `check_moment` let through is an instant, and not a local time."""
    found = _MOMENT.fullmatch(moment)
    return found is not None and found["offset"] is not None


def check_cron(text: str) -> str:
    fields = text.split()
    if text.strip().startswith("@") or len(fields) == 5:
        return text
    given = _NUMBERS[len(fields)] if len(fields) < len(_NUMBERS) else str(len(fields))
    hint = "seconds are not supported" if len(fields) == 6 else "minute, hour, day-of-month, month, day-of-week"
    raise ValueError(f"{given} field{'' if len(fields) == 1 else 's'} given, five are needed: {hint}")


def in_words(problem: Mapping[str, Any], fields: Mapping[str, object]) -> str:
    """Return one of pydantic's problems in words that name the field; `fields` are those that the message has."""
    place = [str(each) for each in problem["loc"]]
    name = place[-1] if place else ""
    match problem["type"]:
        case "extra_forbidden":
            meant = get_close_matches(name, fields, n=1, cutoff=LIKENESS) if len(place) == 1 else []
            words = f"is unknown{f'; did you mean {meant[0]}?' if meant else ''}"
        case "string_type" if name == "id":
            words = "must be text; use str(…)"
        case "string_type":
            words = f"must be {_TYPES.get(name, 'text')}, not {type(problem['input']).__name__}"
        case "string_too_short":
            words = "must not be empty"
        case "string_too_long":
            words = f"must have {problem['ctx']['max_length']} characters at most"
        case "int_type":
            words = f"must be a whole number, not {type(problem['input']).__name__}"
        case "model_type" if name == "webhook":
            words = f"must be a URL or a Webhook, not {type(problem['input']).__name__}"
        case "string_pattern_mismatch" if name in _PATTERNS:
            words = _PATTERNS[name]
        case _:
            words = str(problem["msg"]).removeprefix("Value error, ").replace("Input should", "must", 1)
    return f"{'.'.join(place)}: {words}" if place else words


def _is_zone(name: str) -> bool:
    if name.startswith(_NOT_ZONES):
        return False
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # A machine without a database of zones knows none: Duebell will tell.
        return not _all_zones()
    return True


def _zone_like(name: str) -> str | None:
    """Return the zone that a mistyped name most likely means: `Berlin`, `europe/berlin`, `Europe/Berln` and `New York`
    each mean one. An abbreviation such as `CEST` means none: the zones with names like it are on other continents.
    """
    wanted = name.strip().replace(" ", "_").lower()
    by_name = {zone.lower(): zone for zone in _all_zones()}
    by_city = {zone.lower().rpartition("/")[2]: zone for zone in _all_zones()}
    for names in (by_name, by_city):
        if wanted in names:
            return names[wanted]
    for names in (by_name, by_city) if len(wanted) >= MIN_LENGTH_TO_GUESS else ():
        if close := get_close_matches(wanted, names, n=1, cutoff=0.8):
            return names[close[0]]
    return None


@lru_cache(maxsize=1)
def _all_zones() -> tuple[str, ...]:
    """Return the names of all zones. Of zones with the same city, `Europe/…` and the like come after the old names:
    `_zone_like` takes the last one.
    """
    names = available_timezones() - {"localtime", "posixrules"}
    return tuple(sorted(names, key=lambda zone: ("/" in zone, zone)))
