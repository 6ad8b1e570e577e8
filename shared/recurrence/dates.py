"""Single dates in the text of a rule (RDATE, EXDATE, UNTIL), as instants and wall times of the rule's zone."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from shared.recurrence.arithmetic import BEGIN, DAY, END, at_of, instant_of
from shared.recurrence.ical import Moment
from shared.recurrence.series import Hit
from shared.recurrence.start import Start
from shared.recurrence.zones import Clock, Fold, Gap, instants_of, load_zone, offset_at


@dataclass(frozen=True, slots=True)
class Excluded:
    """The occurrences that EXDATE excludes: single instants, single wall times, whole local days."""

    instants: frozenset[int] = frozenset()
    walls: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()

    def covers(self, hit: Hit) -> bool:
        if not (self.instants or self.walls or self.days):
            return False
        return hit.at in self.instants or all(wall in self.walls or wall // DAY in self.days for wall in hit.walls)

    def excluded_until(self, hit: Hit) -> int:
        """Return until when EXDATE excludes all hits of the series: to the end of a local day, or the hit alone."""
        if hit.walls[0] // DAY not in self.days:
            return hit.at
        return min(hit.single_offset_until, hit.at + DAY - hit.walls[0] % DAY)


NOTHING_EXCLUDED = Excluded()


def extra_dates(moments: tuple[Moment, ...], start: Start, clock: Clock, excluded: Excluded) -> tuple[int, ...]:
    """Return the instants of RDATE. A date without time takes the time of day of the start."""
    found = set()
    for moment in moments:
        wall = moment.wall + (start.wall % DAY if moment.kind == "date" else 0)
        zone = zone_of(moment, start)
        for at in [wall] if moment.kind == "utc" else ats_of(wall, zone, clock.gap, clock.fold):
            if not BEGIN <= at < END:
                continue
            shown = wall if zone is start.zone and moment.kind != "utc" else at + offset_at(start.zone, at)
            if not excluded.covers(Hit(at, (shown,), at)):
                found.add(at)
    return tuple(sorted(found))


def excluded_dates(moments: tuple[Moment, ...], start: Start) -> Excluded:
    """Return what EXDATE excludes. A local time excludes all that shows it: both passes of a fold, a shifted gap."""
    instants: set[int] = set()
    walls, days = set(), set()
    for moment in moments:
        if moment.kind == "date":
            days.add(moment.wall // DAY)
        elif moment.kind == "utc":
            instants.add(moment.wall)
        elif zone_of(moment, start) is start.zone:
            walls.add(moment.wall)
        else:
            instants.update(ats_of(moment.wall, zone_of(moment, start), "shift", "both"))
    return Excluded(frozenset(instants), frozenset(walls), frozenset(days))


def last_at(until: Moment | None, zone: ZoneInfo) -> int | None:
    """Return UNTIL as the last possible instant: the second pass if the clock shows the time twice."""
    if until is None or until.kind == "utc":
        return until.wall if until else None
    shown = last_shown(until)
    if not BEGIN <= shown < END:
        return shown
    return ats_of(shown, zone, "shift", "last")[0]


def last_wall(until: Moment | None) -> int | None:
    """Return UNTIL as the last possible wall time, or None if it is in UTC."""
    return None if until is None or until.kind == "utc" else last_shown(until)


def last_shown(until: Moment) -> int:
    """Return the wall time of UNTIL. A date without time means the end of that day."""
    return until.wall + DAY - 1 if until.kind == "date" else until.wall


def ats_of(wall: int, zone: ZoneInfo, gap: Gap, fold: Fold) -> list[int]:
    if not BEGIN - DAY <= wall < END + DAY:
        return []
    return [at_of(instant) for instant in instants_of(instant_of(wall), zone, gap, fold)]


def zone_of(moment: Moment, start: Start) -> ZoneInfo:
    return start.zone if moment.zone is None else load_zone(moment.zone, "rrule")
