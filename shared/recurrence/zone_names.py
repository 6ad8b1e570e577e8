"""Guesses the zone that is meant by a name that is none: `Berlin`, `europe/berlin`, `Europe/Berln` and `New York` are
common. An abbreviation such as `CEST` is not guessed at: what looks like it is on another continent.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import available_timezones

# Shorter names look like each other.
MIN_LENGTH_TO_GUESS = 5
LIKENESS = 0.8


@lru_cache(maxsize=256)  # a guess takes a millisecond or two, and a mistake comes again and again
def zone_like(name: str) -> str | None:
    """Return the zone, or None if none is likely."""
    wanted = name.strip().replace(" ", "_").lower()
    for zones in (_by_name(), _by_city()):
        if wanted in zones:
            return zones[wanted]
    for zones in (_by_name(), _by_city()) if len(wanted) >= MIN_LENGTH_TO_GUESS else ():
        if close := get_close_matches(wanted, zones, n=1, cutoff=LIKENESS):
            return zones[close[0]]
    return None


@lru_cache(maxsize=1)
def _by_name() -> Mapping[str, str]:
    return {zone.lower(): zone for zone in _all_zones()}


@lru_cache(maxsize=1)
def _by_city() -> Mapping[str, str]:
    return {zone.lower().rpartition("/")[2]: zone for zone in _all_zones()}


def _all_zones() -> list[str]:
    """Return them in an order in which, of zones with the same city, that of a continent comes last, and so wins."""
    return sorted(available_timezones() - {"localtime", "posixrules"}, key=lambda zone: ("/" in zone, zone))
