"""Parts of sentences: who, when, how many. Pure."""

import shlex
from datetime import datetime, timedelta, tzinfo

from shared.reading.times import describe_duration, full_time
from shared.recurrence import BadRule, load_zone
from shared.why.facts import Entry, Facts

MAX_ANSWER_LENGTH = 120


class Times:
    """Tells instants in the zone of the job's rule, or in that of the reader: if the job has no rule, or if the rule's
    clock is not asked for.
    """

    def __init__(self, facts: Facts, zone: tzinfo | None, *, by_rules_clock: bool = True) -> None:
        self._now = facts.now
        self._zone = (_zone_of_rule(facts) if by_rules_clock else None) or zone

    def at(self, instant: datetime | None) -> str:
        return "an unknown time" if instant is None else full_time(instant, self._zone, self._now)

    def since(self, instant: datetime) -> str:
        return describe_duration(self._now - instant)


def _zone_of_rule(facts: Facts) -> tzinfo | None:
    if facts.job is None or facts.job.timezone is None:
        return None
    try:
        return load_zone(facts.job.timezone)
    except BadRule:  # a zone that this machine does not know
        return None


def late_by(entry: Entry) -> str:
    """Return ` (12 ms late)` for a fired occurrence."""
    if entry.due_at is None:
        return ""
    late = entry.at - entry.due_at
    return f" ({describe_duration(late)} late)" if late > timedelta() else " (on time)"


def who(entry: Entry) -> str:
    """Name the person first, then the program, then the AMQP user, as far as they are known."""
    program = " as ".join(filter(None, (entry.app_id, entry.by_user))) or "an unnamed application"
    return f"{entry.operator} with {program}" if entry.operator else program


def noted(entry: Entry) -> str:
    return f", with the note: {entry.note}" if entry.note else ""


def shortened(text: str, length: int = MAX_ANSWER_LENGTH) -> str:
    """Return the text on one line, cut to the length."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def command(*words: str) -> str:
    """Return a command line for a sentence, in quotes that a shell understands."""
    return f"`duebell {shlex.join(words)}`"
