"""The oracle: finds every occurrence of a rule in a slow and simple way, and shares no code with the engine.

A rule of a day or longer is walked by dateutil from its true DTSTART in wall time, and each wall time is looked for
among all instants near it. A shorter one is every step of elapsed time from DTSTART, kept or dropped by what the clock
shows. Everything up to a horizon is gathered, sorted and counted; nothing is skipped.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product, takewhile
from typing import Any
from zoneinfo import ZoneInfo

from dateutil.rrule import FREQNAMES, MO, WEEKLY, rrule, weekday  # type: ignore[import-untyped]

UNITS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
ZERO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SlowRule:
    """A rule as its parts, from which both the text for the engine and the walk are made."""

    freq: str
    start: datetime
    """Naive: wall time in the zone."""
    zone: ZoneInfo
    interval: int = 1
    wkst: int = 0
    count: int | None = None
    lists: dict[str, tuple[int, ...]] = field(default_factory=dict)
    byday: tuple[tuple[int, int], ...] = ()
    gap: str | None = None
    fold: str | None = None

    def text(self) -> str:
        parts = [f"FREQ={self.freq}", f"INTERVAL={self.interval}", f"WKST={DAYS[self.wkst]}"]
        parts += [f"COUNT={self.count}"] if self.count is not None else []
        parts += [f"{name}={','.join(map(str, values))}" for name, values in self.lists.items()]
        parts += [f"BYDAY={','.join(f'{nth or str()}{DAYS[day]}' for day, nth in self.byday)}"] if self.byday else []
        return ";".join(parts)

    def short(self) -> bool:
        return self.freq in UNITS

    def occurrences(self, horizon: datetime, since: datetime | None = None) -> list[datetime]:
        """All of them before the horizon (naive), in order; without COUNT, on demand only those of the last part."""
        since = max(self.start, since or self.start)
        gap = self.gap or ("skip" if self.short() else "shift")
        fold = self.fold or ("both" if self.short() else "first")
        begin = instants_showing(self.start, self.zone, "shift", "first")[0]
        walk = self.elapsed if self.short() else self.walked
        return sorted({at for at in walk(since, horizon, gap, fold) if at >= begin})[: self.count]

    def walked(self, since: datetime, horizon: datetime, gap: str, fold: str) -> Iterable[datetime]:
        by: dict[str, Any] = {name.lower(): values for name, values in self.lists.items()}
        if self.byday:
            by["byweekday"] = [weekday(day, nth) if nth else weekday(day) for day, nth in self.byday]
        freq = FREQNAMES.index(self.freq)
        begin = self.start
        if freq == WEEKLY and "bysetpos" in by:
            # dateutil cuts the first week at DTSTART before it counts positions; the RFC counts in whole weeks.
            by = {"byweekday": self.start.weekday()} | by
            by = {"byhour": begin.hour, "byminute": begin.minute, "bysecond": begin.second} | by
            begin = (begin - timedelta(days=(begin.weekday() - self.wkst) % 7)).replace(hour=0, minute=0, second=0)
        rule = rrule(freq, begin, self.interval, wkst=(MO.weekday + self.wkst), **by)
        for wall in takewhile(lambda wall: wall < horizon, rule):
            if wall >= since:
                yield from instants_showing(wall, self.zone, gap, fold)

    def elapsed(self, since: datetime, horizon: datetime, gap: str, fold: str) -> Iterable[datetime]:
        unit = UNITS[self.freq]
        step = timedelta(seconds=unit * self.interval)
        begin = instants_showing(self.start, self.zone, "shift", "first")[0]
        at = begin + (since - self.start) // step * step - step
        # One step more on either side: the unit around a step may reach beyond it.
        while at < horizon.replace(tzinfo=UTC) + step:
            for offset in offsets_near(at, self.zone):
                for wall in self.shown_in_unit(at, begin, offset, unit):
                    yield from self.kept(wall, offset, gap, fold)
            at += step

    def shown_in_unit(self, at: datetime, begin: datetime, offset: timedelta, unit: int) -> Iterable[datetime]:
        shown, start = (instant + offset - ZERO for instant in (at, begin))
        lists = self.lists
        second = lists.get("BYSECOND", (start.seconds % 60,)) if unit > 1 else (shown.seconds % 60,)
        minute = lists.get("BYMINUTE", (start.seconds // 60 % 60,)) if unit > 60 else (shown.seconds // 60 % 60,)
        hour = shown.seconds // 3600
        walls = sorted(
            ZERO.replace(tzinfo=None) + timedelta(days=shown.days, hours=hour, minutes=m, seconds=s)
            for m, s in product(minute, second)
        )
        positions = lists.get("BYSETPOS")
        if positions is not None:
            walls = [w for i, w in enumerate(walls) if i + 1 in positions or i - len(walls) in positions]
        return [wall for wall in walls if self.limits_allow(wall)]

    def limits_allow(self, wall: datetime) -> bool:
        lists = self.lists
        length = ((wall.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)).day
        return (
            wall.hour in lists.get("BYHOUR", (wall.hour,))
            and wall.minute in lists.get("BYMINUTE", (wall.minute,))
            and wall.second in lists.get("BYSECOND", (wall.second,))
            and wall.month in lists.get("BYMONTH", (wall.month,))
            and any(day in (wall.day, wall.day - length - 1) for day in lists.get("BYMONTHDAY", (wall.day,)))
            and (not self.byday or any(day == wall.weekday() for day, _ in self.byday))
        )

    def kept(self, wall: datetime, offset: timedelta, gap: str, fold: str) -> Iterable[datetime]:
        """The instant of a wall read with this offset, if the clock shows it, or did until it was put forward."""
        at = (wall - offset).replace(tzinfo=UTC)
        if at in instants_showing(wall, self.zone, gap, fold):
            real = offset_at(self.zone, at) == offset
            if real or not instants_showing(wall, self.zone, "skip", "both"):
                yield at


def instants_showing(wall: datetime, zone: ZoneInfo, gap: str, fold: str) -> list[datetime]:
    """When the zone's clock shows this, by asking it for every offset it has had within two days."""
    as_utc = wall.replace(tzinfo=UTC)
    found = sorted(as_utc - o for o in offsets_near(as_utc, zone) if offset_at(zone, as_utc - o) == o)
    if not found:
        return [as_utc - offset_at(zone, as_utc - timedelta(hours=40))] if gap == "shift" else []
    return {"first": found[:1], "last": found[-1:], "both": found}[fold]


def offsets_near(at: datetime, zone: ZoneInfo) -> set[timedelta]:
    return {offset_at(zone, at + timedelta(hours=hours)) for hours in range(-40, 41, 20)}


def offset_at(zone: ZoneInfo, at: datetime) -> timedelta:
    offset = at.astimezone(zone).utcoffset()
    assert offset is not None
    return offset
