"""The recurrence engine on any text: the first two bytes choose the zone and whether it is an RRULE or cron."""

import json
from itertools import chain

import atheris

from tests.fuzz.running import fuzz

with atheris.instrument_imports(include=["shared"]):
    from shared.recurrence import RuleSpec, dtstart_in
from tests.hostile.families import bombs, rules
from tests.unit.recurrence.rules_at_random import CHANGES
from tests.unit.recurrence.test_any_text import answers


def check(data: bytes) -> None:
    if len(data) < 2:
        return
    zone, start = CHANGES[data[0] % len(CHANGES)]
    text = data[2:].decode(errors="replace")
    dtstart_in(text)
    is_cron = data[1] % 4 == 0
    answers(RuleSpec(start, zone, rrule=None if is_cron else text, cron=text if is_cron else None))


def seeds() -> list[bytes]:
    """Every rule of the corpus."""
    found = []
    for case in chain(rules.cases(), bombs.cases()):
        content = json.loads(case.body)
        for way, name in enumerate(("cron", "rrule")):
            if isinstance(text := content.get(name), str):
                found.append(bytes([0, way]) + text.encode())
    return found


if __name__ == "__main__":
    fuzz("rules", check, seeds())
