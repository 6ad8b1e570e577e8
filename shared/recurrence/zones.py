"""Wall time and instants: the one place that knows what a gap and a fold are, and what a rule wants done with them.

`resolve_local` answers for one wall time. `Clock.span_at` answers for the whole line: it cuts it into spans in which
the zone's offset stands still, and says for each which offsets to read walls with. In a gap that shifts, walls that do
not exist are read with the offset before it, beside those that do; in a fold that rings once, one pass is silent.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from shared.errors import BadRule
from shared.recurrence.arithmetic import DAY, at_of

Gap = Literal["shift", "skip"]
Fold = Literal["first", "last", "both"]

# No two changes of any zone's offset since 1900 are nearer than four days, so probing every second day sees them all.
PROBE = 2 * DAY
NAME = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
NOT_A_ZONE = ("right/", "posix/", "localtime", "posixrules")


def load_zone(name: str, field: str = "timezone") -> ZoneInfo:
    if len(name) > 64 or not NAME.fullmatch(name) or name.startswith(NOT_A_ZONE):
        raise BadRule(field, f"timezone: {name[:64]!r} is not an IANA time zone")
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise BadRule(field, f"timezone: {name!r} is not an IANA time zone") from None


def resolve_local(local: datetime, zone: ZoneInfo, gap: Gap = "shift", fold: Fold = "first") -> datetime | None:
    """The instant of a naive wall time; None if it falls into a gap that skips. Of `both`, the first."""
    try:
        instants = instants_of(local, zone, gap, fold)
    except OverflowError:
        raise BadRule("at", f"at: {local.isoformat()} is beyond the calendar") from None
    return instants[0] if instants else None


def instants_of(local: datetime, zone: ZoneInfo, gap: Gap, fold: Fold) -> tuple[datetime, ...]:
    """Every instant at which a wall time rings: none, one or two."""
    first = local.replace(tzinfo=zone, fold=0)
    second = local.replace(tzinfo=zone, fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    if before is None or after is None or before == after:
        return (first.astimezone(UTC),)
    if before < after:
        # Python reads fold=0 in a gap with the offset before it, which moves the time forward by the gap's length.
        return (first.astimezone(UTC),) if gap == "shift" else ()
    passes = (first.astimezone(UTC), second.astimezone(UTC))
    return {"first": passes[:1], "last": passes[1:], "both": passes}[fold]


class Change(NamedTuple):
    at: int
    before: int
    after: int


class Span(NamedTuple):
    begin: int
    end: int
    offsets: tuple[int, ...]
    goes_back: bool
    """At its end, or within two days of it, the clock is put back: walls already read come once more."""


class Clock:
    """A zone's wall clock together with what a rule does at its gaps and folds."""

    __slots__ = ("fold", "gap", "latest", "zone")

    def __init__(self, zone: ZoneInfo, gap: Gap, fold: Fold) -> None:
        self.zone, self.gap, self.fold = zone, gap, fold
        self.latest = Span(0, 0, (), goes_back=False)

    def span_at(self, at: int) -> Span:
        # Rings come in order, so the span of the last answer is mostly the one wanted.
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
    silent, shifted = [], []
    for change in near:
        length = change.after - change.before
        if length > 0 and gap == "shift":
            shifted.append((change.at, change.at + length, change.before))
        elif length < 0 and fold == "first":
            silent.append((change.at, change.at - length))
        elif length < 0 and fold == "last":
            silent.append((change.at + length, change.at))
    edges = {begin, end, *(c.at for c in near), *(e for s in silent for e in s), *(e for s in shifted for e in s[:2])}
    inside = sorted(edge for edge in edges if begin <= edge <= end)
    back = [c.at for c in near if c.after < c.before]
    spans = []
    for left, right in pairwise(inside):
        offsets = [] if any(s <= left < e for s, e in silent) else [offset_at(zone, left)]
        offsets += [before for s, e, before in shifted if s <= left < e]
        spans.append(Span(left, right, tuple(offsets), any(right <= at < right + 2 * DAY for at in back)))
    return tuple(spans)


@lru_cache(maxsize=4096)
def changes_in(zone: ZoneInfo, year: int) -> tuple[Change, ...]:
    """Every change of the offset within a UTC year. Python does not publish its table, so it is found by asking."""
    changes = []
    begin, end = year_begins(year), year_begins(year + 1)
    left, before = begin - 1, offset_at(zone, begin - 1)
    while left < end - 1:
        right = min(left + PROBE, end - 1)
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
