"""Recurrence: a rule and a zone in, instants out. Pure: no I/O, no clock, no memory of what was asked before.

    rule = compile_rule(RuleSpec(start_at="2030-01-07T09:00:00", timezone="Europe/Berlin", rrule="FREQ=WEEKLY"))
    ring = rule.first()
    ring = rule.next_after(ring)

An RRULE text goes through `ical` and `parts`, a cron expression through `cron`; both become patterns of wall times
(`patterns`, `ticks`), which `series` lays on the absolute line with the spans of `zones`. docs/recurrence.md says what
every field means.
"""

from shared.errors import BadRule
from shared.recurrence.compile import RuleSpec, compile_rule
from shared.recurrence.ical import dtstart_in
from shared.recurrence.rule import Occurrence, Rule, occurrences
from shared.recurrence.zones import load_zone, resolve_local

__all__ = [
    "BadRule",
    "Occurrence",
    "Rule",
    "RuleSpec",
    "compile_rule",
    "dtstart_in",
    "load_zone",
    "occurrences",
    "resolve_local",
]
