"""Instants as the messages write them: RFC 3339 with an offset, or a local date-time that needs a time zone. Pure."""

import re
from datetime import UTC, datetime

import orjson

FIRST_YEAR = 1900
LAST_YEAR = 2199

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:[0-5]\d)?", re.ASCII)


def parse_date_time(text: str) -> datetime:
    """Aware if the text has an offset, naive (local) if not. ValueError says what is wrong with it."""
    if not _RFC3339.fullmatch(text):
        raise ValueError("is not a date and time such as 2026-07-10T09:00:00Z or 2026-07-10T09:00:00")
    # fromisoformat knows no lower-case t and z, and cuts what is finer than a microsecond by itself.
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(f"is not a real date and time: {error}") from None
    require_year_in_range(moment)
    if moment.tzinfo is None:
        return moment
    instant = moment.astimezone(UTC)  # may cross into another year
    require_year_in_range(instant)
    return instant


def require_year_in_range(moment: datetime) -> None:
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"year {moment.year} is out of range, {FIRST_YEAR} to {LAST_YEAR}")


# For datetimes in UTC that orjson writes with all else: RFC 3339 with a Z; a fraction only where there is one.
AS_INSTANTS = orjson.OPT_UTC_Z


def format_instant(instant: datetime) -> str:
    in_utc = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    # Written for every event; isoformat() takes more than twice as long.
    return orjson.dumps(in_utc, option=AS_INSTANTS)[1:-1].decode()
