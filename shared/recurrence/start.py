"""The start of a rule: `start_at` of the request or DTSTART of its text, as an instant and as a wall time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from shared.contract.fields import FIRST_YEAR, LAST_YEAR, parse_date_time
from shared.errors import BadRule
from shared.recurrence.arithmetic import at_of, instant_of, wall_of
from shared.recurrence.ical import Moment
from shared.recurrence.zones import load_zone, resolve_local


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a rule. A local start in a gap is shifted after it; one in a fold is its first pass."""

    zone: ZoneInfo
    instant: datetime
    wall: int

    @property
    def at(self) -> int:
        return at_of(self.instant)


def start_from_text(text: str, timezone: str) -> Start:
    zone = load_zone(timezone)
    try:
        moment = parse_date_time(text)
    except ValueError as error:
        raise BadRule("start_at", f"start_at: {text[:40]!r} {error}") from None
    return start_of(moment, zone, "start_at")


def start_from_dtstart(moment: Moment, timezone: str) -> Start:
    """Read DTSTART. Its TZID is the zone of the whole rule; the request must not name another one."""
    if moment.zone is not None and timezone not in {"UTC", moment.zone}:
        raise BadRule("timezone", f"timezone: {timezone[:64]} is not {moment.zone[:64]}, the TZID of DTSTART")
    zone = load_zone(timezone) if moment.zone is None else load_zone(moment.zone, "rrule")
    read = instant_of(moment.wall)
    return start_of(read if moment.kind == "utc" else read.replace(tzinfo=None), zone, "rrule")


def start_of(moment: datetime, zone: ZoneInfo, field: str) -> Start:
    name = "start_at" if field == "start_at" else "DTSTART"
    # Within one more year, so that no conversion below leaves the calendar of Python.
    if not FIRST_YEAR - 1 <= moment.year <= LAST_YEAR + 1:
        raise BadRule(field, f"{name}: {moment.year} is not between {FIRST_YEAR} and {LAST_YEAR}")
    if moment.tzinfo is None:
        instant = resolve_local(moment, zone)
        local = moment
    else:
        instant = moment.astimezone(UTC)
        local = moment.astimezone(zone)
    if instant is None or not (FIRST_YEAR <= instant.year <= LAST_YEAR and FIRST_YEAR <= local.year <= LAST_YEAR):
        raise BadRule(field, f"{name}: {local.year} is not between {FIRST_YEAR} and {LAST_YEAR}")
    return Start(zone, instant, wall_of(local))
