"""Converts between wall times and instants. Only this module knows gaps and folds, and what a rule does in them.

`resolve_local` converts one wall time. `Clock.span_at` cuts time into spans in which the zone's offset is constant, and
tells for each span which offsets convert its wall times. In a gap that shifts, wall times that do not exist are read
with the offset before the gap, beside those that exist. In a fold with one occurrence, one of the passes is skipped.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from shared.errors import BadRule
from shared.recurrence.arithmetic import DAY, at_of
from shared.recurrence.zone_names import zone_like

Gap = Literal["shift", "skip"]
Fold = Literal["first", "last", "both"]

# Since 1900 no two changes of a zone are less than four days apart, so a probe every two days finds them all.
PROBE_STEP = 2 * DAY
ZONE_NAME = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
MAX_ZONE_LENGTH = 64
NOT_ZONES = ("right/", "posix/", "localtime", "posixrules")


def load_zone(name: str, field: str = "timezone") -> ZoneInfo:
    if len(name) > MAX_ZONE_LENGTH or not ZONE_NAME.fullmatch(name) or name.startswith(NOT_ZONES):
        raise _no_zone(name[:MAX_ZONE_LENGTH], field)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise _no_zone(name, field) from None


def _no_zone(name: str, field: str) -> BadRule:
    meant = zone_like(name)
    hint = f"; did you mean {meant}?" if meant else ""
    return BadRule(field, f"timezone: {name!r} is not an IANA time zone{hint}")


def resolve_local(local: datetime, zone: ZoneInfo, gap: Gap = "shift", fold: Fold = "first") -> datetime | None:
    """Return the instant of a naive wall time, or None if it is in a gap that skips. For `both`, return the first."""
    try:
        instants = instants_of(local, zone, gap, fold)
    except OverflowError:
        raise BadRule("at", f"at: {local.isoformat()} is beyond the calendar") from None
    return instants[0] if instants else None


def instants_of(local: datetime, zone: ZoneInfo, gap: Gap, fold: Fold) -> tuple[datetime, ...]:
    """Return the instants of a wall time: none, one or two."""
    first = local.replace(tzinfo=zone, fold=0)
    second = local.replace(tzinfo=zone, fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    if before is None or after is None or before == after:
        return (first.astimezone(UTC),)
    if before < after:
        # With fold=0 Python reads a time in a gap with the offset before it, so the gap shifts the time forward.
        return (first.astimezone(UTC),) if gap == "shift" else ()
    passes = (first.astimezone(UTC), second.astimezone(UTC))
    return {"first": passes[:1], "last": passes[1:], "both": passes}[fold]


class Change(NamedTuple):
    """A change of a zone's offset."""

    at: int
    before: int
    after: int


class Span(NamedTuple):
    """A span of time in which the zone's offset is constant, and the offsets that convert its wall times."""

    begin: int
    end: int
    offsets: tuple[int, ...]
    goes_back: bool  # within two days of its end the clock is put back, and shows wall times again


class Clock:
    """Converts the wall clock of a zone for one rule, which has its own choice for gaps and folds."""

    __slots__ = ("fold", "gap", "latest", "zone")

    def __init__(self, zone: ZoneInfo, gap: Gap, fold: Fold) -> None:
        self.zone, self.gap, self.fold = zone, gap, fold
        self.latest = Span(0, 0, (), goes_back=False)

    def span_at(self, at: int) -> Span:
        # Searches go forward, so the span of the last call is mostly the right one.
        span = self.latest
        if not span.begin <= at < span.end:
            span = self.latest = self.find_span(at)
        return span

    def find_span(self, at: int) -> Span:
        for span in spans_in(self.zone, datetime.fromtimestamp(at, UTC).year, self.gap, self.fold):
            if at < span.end:
                return span
        raise AssertionError("the spans of a year cover it to its end")


@lru_cache(maxsize=4096)
def spans_in(zone: ZoneInfo, year: int, gap: Gap, fold: Fold) -> tuple[Span, ...]:
    begin, end = year_begins(year), year_begins(year + 1)
    near = [
        c for y in (year - 1, year, year + 1) for c in changes_in(zone, y) if begin - 2 * DAY < c.at < end + 2 * DAY
    ]
    skipped, shifted = [], []
    for change in near:
        length = change.after - change.before
        if length > 0 and gap == "shift":
            shifted.append((change.at, change.at + length, change.before))
        elif length < 0 and fold == "first":
            skipped.append((change.at, change.at - length))
        elif length < 0 and fold == "last":
            skipped.append((change.at + length, change.at))
    edges = {begin, end, *(c.at for c in near), *(e for s in skipped for e in s), *(e for s in shifted for e in s[:2])}
    inside = sorted(edge for edge in edges if begin <= edge <= end)
    back = [c.at for c in near if c.after < c.before]
    spans = []
    for left, right in pairwise(inside):
        offsets = [] if any(s <= left < e for s, e in skipped) else [offset_at(zone, left)]
        offsets += [before for s, e, before in shifted if s <= left < e]
        spans.append(Span(left, right, tuple(offsets), any(right <= at < right + 2 * DAY for at in back)))
    return tuple(spans)


@lru_cache(maxsize=4096)
def changes_in(zone: ZoneInfo, year: int) -> tuple[Change, ...]:
    """Return all changes of the offset in a UTC year. Python does not publish its table, so this probes the zone."""
    changes = []
    begin, end = year_begins(year), year_begins(year + 1)
    left, before = begin - 1, offset_at(zone, begin - 1)
    while left < end - 1:
        right = min(left + PROBE_STEP, end - 1)
        after = offset_at(zone, right)
        if after != before:
            low, high = left, right
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset_at(zone, middle) == before else (low, middle)
            changes.append(Change(high, before, after))
        left, before = right, after
    return tuple(changes)


def offset_at(zone: ZoneInfo, at: int) -> int:
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    return 0 if offset is None else offset.days * DAY + offset.seconds


def year_begins(year: int) -> int:
    return at_of(datetime(year, 1, 1, tzinfo=UTC))
