"""The next occurrences of a rule for people: with their local times, and a note where the clocks change. Pure."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from shared.recurrence.compile import RuleSpec, compile_rule
from shared.recurrence.rule import Occurrence
from shared.recurrence.zones import load_zone


@dataclass(frozen=True, slots=True)
class MarkedOccurrence:
    """An occurrence by the rule's own clock."""

    at: datetime
    local: str
    note: str | None


def marked_occurrences(spec: RuleSpec, count: int, start: Occurrence | None = None) -> list[MarkedOccurrence]:
    """Return up to `count` occurrences from `start` on, or from the first one. Raises BadRule."""
    rule = compile_rule(spec)
    zone = load_zone(spec.timezone)
    occurrence = start or rule.first()
    found: list[Occurrence] = []
    while occurrence is not None and len(found) < count:
        found.append(occurrence)
        occurrence = rule.next_after(occurrence)
    return [
        MarkedOccurrence(one.at, one.at.astimezone(zone).strftime("%a %Y-%m-%d %H:%M:%S %Z"), note)
        for one, note in zip(found, _notes(spec, found, zone), strict=True)
    ]


def _notes(spec: RuleSpec, found: list[Occurrence], zone: ZoneInfo) -> list[str | None]:
    notes = []
    before = None
    for one in found:
        local = one.at.astimezone(zone)
        offset = local.utcoffset()
        other_pass = local.replace(fold=1 - local.fold).utcoffset()
        note = None
        if _was_moved(spec, one, zone):
            note = "moved forward: the clocks skip its time on this day"
        elif offset != other_pass:
            note = "the clocks show this time twice on this day: the " + ("second" if local.fold else "first")
        elif before is not None and offset != before:
            note = f"the clocks have changed: {local.strftime('%z')}"
        notes.append(note)
        before = offset
    return notes


def _was_moved(spec: RuleSpec, one: Occurrence, zone: ZoneInfo) -> bool:
    """Tell whether the occurrence was moved: a rule that skips gaps would not have it."""
    hour_before = datetime.fromtimestamp(one.at.timestamp() - 3600, zone).utcoffset()
    if hour_before == one.at.astimezone(zone).utcoffset() or spec.dst_gap == "skip" or spec.every_seconds:
        return False
    skipping = compile_rule(replace(spec, dst_gap="skip"))
    following = skipping.next_after(Occurrence(datetime.fromtimestamp(one.at.timestamp() - 1, UTC), one.index))
    return following is None or following.at != one.at
