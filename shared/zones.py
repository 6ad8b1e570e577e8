"""Time zones by IANA name. Pure, but for the zone files that zoneinfo reads once."""

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


@lru_cache(maxsize=1024)
def load_zone(name: str) -> ZoneInfo:
    """ValueError for what is not a zone, whatever zoneinfo makes of it (a directory, a path, a NUL)."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is not an IANA time zone such as Europe/Berlin") from None
