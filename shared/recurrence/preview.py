"""A look ahead for people: the next few instants of a rule after a moment."""

from datetime import datetime

from shared.recurrence.rule import Occurrence, Rule

CALLS = 4
"""How often a rule with COUNT is asked to count on towards the moment before the preview is given up."""


def occurrences(rule: Rule, after: datetime, limit: int, since: Occurrence | None = None) -> list[datetime]:
    """Up to `limit` instants strictly after `after`.

    A rule with COUNT is counted from `since`, an occurrence already known, or from its first; if that is some thousands
    of occurrences before `after`, the list is empty rather than the caller held up.
    """
    current = since or rule.first()
    for _ in range(CALLS):
        if current is None or current.at > after:
            break
        current = rule.next_after(rule.latest_before(current, after + datetime.resolution))
    else:
        return []
    found: list[datetime] = []
    while current is not None and len(found) < limit:
        found.append(current.at)
        current = rule.next_after(current)
    return found
