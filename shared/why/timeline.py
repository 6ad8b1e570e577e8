"""The history of an id in words, line by line. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared.contract.delayed import exchange_label
from shared.contract.history import What
from shared.reading.times import describe_duration
from shared.why.facts import Entry
from shared.why.sentences import counted, shortened

MAX_ERRORS_LENGTH = 300


def describe_entry(entry: Entry) -> str:
    """Say in a few words what the entry tells, without when and who."""
    is_of_message = "delayed" in entry.details and entry.what != What.REFUSED
    describe = _of_message if is_of_message else _DESCRIBED.get(entry.what, _of_newer_release)
    described = describe(entry)
    bulk = f"bulk {entry.details['bulk']}" if "bulk" in entry.details else ""
    return ", ".join(filter(None, (described, bulk, entry.note and f"note: {entry.note}")))


def _of_message(entry: Entry) -> str:
    details = entry.details
    key = f" with key {details['routing_key']}" if "routing_key" in details else ""
    late = f", {describe_duration(entry.at - entry.due_at)} late" if _is_late(entry) and entry.due_at else ""
    replaced = ", instead of an earlier one" if entry.what == What.RESCHEDULED else ""
    exchange = exchange_label(str(details.get("exchange", "")))
    return f"delayed message {details['delayed']} to {exchange}{key}{late}{replaced}"


def _is_late(entry: Entry) -> bool:
    return entry.what == What.FIRED and entry.due_at is not None and entry.at > entry.due_at


def _accepted(entry: Entry) -> str:
    life = f", life {entry.life}" if entry.life and entry.life > 1 else ""
    return f"revision {entry.revision}{life}, topic {entry.details.get('topic', '?')}"


def _rescheduled(entry: Entry) -> str:
    return f"revision {entry.revision}: {', '.join(_changes(entry)) or 'says the same'}"


def _changes(entry: Entry) -> Iterator[str]:
    for name, change in entry.details.get("changed", {}).items():
        match name:
            case "topic":
                yield f"topic {change[1]} instead of {change[0]}"
            case "next_run_at":
                yield "another moment"
            case _:
                yield f"another {name}"


def _errors(entry: Entry) -> str:
    revision = f"revision {entry.revision}: " if entry.revision else ""
    return revision + shortened("; ".join(entry.errors), MAX_ERRORS_LENGTH)


def _closed(entry: Entry) -> str:
    return f"up to revision {entry.revision}" if entry.revision else ""


def _paused(entry: Entry) -> str:
    return f"revision {entry.revision}" if entry.revision else ""


def _triggered(entry: Entry) -> str:
    return f"trigger {entry.details.get('trigger_id', '?')}"


def _fired(entry: Entry) -> str:
    occurrence = _triggered(entry) if "trigger_id" in entry.details else f"sequence {entry.sequence}"
    if entry.due_at is None or entry.at <= entry.due_at:
        return occurrence
    return f"{occurrence}, {describe_duration(entry.at - entry.due_at)} late"


def _unrouted(entry: Entry) -> str:
    return f"sequence {entry.sequence}, no queue was bound for {entry.details.get('routing_key', '?')}"


def _refused(entry: Entry) -> str:
    details = entry.details
    key = f" {details['routing_key']}" if "routing_key" in details else ""
    return f"{details.get('reason', '?')}{key}, {counted(int(details.get('refusals', 1)), 'time')} in a row"


def _dropped(entry: Entry) -> str:
    return f"misfire policy {entry.details.get('misfire', '?')}"


def _ended(_: Entry) -> str:
    return "the rule has no further occurrence"


def _delivered(entry: Entry) -> str:
    details = entry.details
    result = details.get("reason") or f"http_{details.get('status_code', '2xx')}"
    attempts = int(details.get("attempts", 1))
    return f"{details.get('host', '?')}: {result}" + (f" after {attempts} attempts" if attempts > 1 else "")


def _replayed(entry: Entry) -> str:
    return f"delivery {entry.details.get('delivery', '?')}"


def _bulk(entry: Entry) -> str:
    details = entry.details
    changed = counted(int(details.get("changed", 0)), "job")
    return f"{details.get('action', '?')} of {_selected(details.get('selector', {}))}: {changed} changed"


def _of_newer_release(_: Entry) -> str:
    return ""  # its word has to do


def _selected(selector: Mapping[str, Any]) -> str:
    labels = [f"{key}={value}" for key, value in selector.get("labels", {}).items()]
    topic = [f"topic {selector['topic']}"] if "topic" in selector else []
    begins = [f"ids that begin with {selector['id_prefix']}"] if "id_prefix" in selector else []
    return ", ".join([*labels, *topic, *begins])


_DESCRIBED: Mapping[str, Callable[[Entry], str]] = {
    What.ACCEPTED: _accepted,
    What.RESCHEDULED: _rescheduled,
    What.DUPLICATE: _errors,
    What.REJECTED: _errors,
    What.CANCELLED: _closed,
    What.CLOSED: _closed,
    What.PAUSED: _paused,
    What.RESUMED: _paused,
    What.TRIGGERED: _triggered,
    What.FIRED: _fired,
    What.UNROUTED: _unrouted,
    What.REFUSED: _refused,
    What.DROPPED: _dropped,
    What.ENDED: _ended,
    What.DELIVERED: _delivered,
    What.DELIVERY_FAILED: _delivered,
    What.REPLAYED: _replayed,
    What.BULK: _bulk,
}
