"""Instants and durations as a person reads them: a local time beside its distance from now. Pure, except that the zone
of this machine is asked for where no zone is given.
"""

from datetime import datetime, timedelta, tzinfo

# From so many of a unit on, the next larger one is shown: "119 s" says more than "1 min".
_UNITS = (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48), ("days", 86_400, 730), ("years", 31_556_952, None))


def describe_duration(duration: timedelta) -> str:
    """Return a duration in one unit, such as 340 ms, 45 s, 3 min, 2 h or 5 days."""
    seconds = abs(duration.total_seconds())
    sign = "-" if duration < timedelta() else ""
    if seconds < 1:
        milliseconds = seconds * 1000
        return f"{sign}{milliseconds:.0f} ms" if milliseconds >= 10 or not seconds else f"{sign}{milliseconds:.2g} ms"
    if seconds < 10:
        return f"{sign}{seconds:.3g} s"
    for unit, size, limit in _UNITS:
        if limit is None or seconds < limit * size:
            return f"{sign}{seconds // size:.0f} {unit}"
    raise AssertionError("the largest unit has no limit")


def describe_distance(instant: datetime, now: datetime) -> str:
    """Return how far an instant is from now, such as `in 3 h` or `2 min ago`."""
    distance = timedelta(seconds=round((instant - now).total_seconds()))
    if not distance:
        return "now"
    words = describe_duration(abs(distance))
    return f"in {words}" if distance > timedelta() else f"{words} ago"


def full_time(instant: datetime, zone: tzinfo | None, now: datetime) -> str:
    """Return `2026-11-19 14:03:22.123 CET, in 3 h`."""
    local = instant.astimezone(zone)
    fraction = f".{local.microsecond // 1000:03d}" if local.microsecond >= 1000 else ""
    return f"{local:%Y-%m-%d %H:%M:%S}{fraction} {local.tzname()}, {describe_distance(instant, now)}"


def short_time(instant: datetime, zone: tzinfo | None, now: datetime) -> str:
    """Return the time for a column of a table: `14:03:22, in 3 h` today, and `2026-11-21 14:03, in 2 days` else."""
    local = instant.astimezone(zone)
    today = local.date() == now.astimezone(zone).date()
    return f"{local:%H:%M:%S}, {describe_distance(instant, now)}" if today else (
        f"{local:%Y-%m-%d %H:%M}, {describe_distance(instant, now)}"
    )  # fmt: skip


def zone_name(zone: tzinfo | None, now: datetime) -> str:
    """Return the name that a heading gives to the zone of its times."""
    return str(zone) if zone is not None else (now.astimezone().tzname() or "local time")
