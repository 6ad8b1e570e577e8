"""Recurrence rules: from a rule and a zone to instants. Pure: no I/O, no clock, no state between calls but caches.

    rule = compile_rule(RuleSpec(start_at="2030-01-07T09:00:00", timezone="Europe/Berlin", rrule="FREQ=WEEKLY"))
    occurrence = rule.first()
    occurrence = rule.next_after(occurrence)

`ical` and `parts` read an RRULE text, `cron` reads a cron expression. Both become patterns of wall times (`patterns`,
`ticks`), which `series` converts into instants with the spans of `zones`. docs/recurrence.md explains every field.
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
