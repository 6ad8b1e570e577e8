"""Explanations of delayed messages: of those that wait under an id, or of the last thing that became of one. Pure."""

from shared.contract.delayed import exchange_label
from shared.contract.history import What
from shared.why.explanation import Cause, Explanation
from shared.why.facts import Entry, Facts
from shared.why.pending import OVERDUE_AFTER, waits_for_producer
from shared.why.sentences import Times, command, late_by, noted, who


def explain_waiting(facts: Facts, times: Times) -> Explanation:
    """Say what the first of the delayed messages under the id waits for."""
    first, more = facts.delayed[0], len(facts.delayed) - 1
    to = f"the exchange {first.exchange} with the routing key {first.routing_key or '(empty)'}"
    others = f" {more} more wait under this id." if more else ""
    if first.refusals and first.retry_at is not None and not waits_for_producer(facts, first.retry_at):
        says = (
            f"A delayed message, due {times.at(first.due_at)}, is not taken by RabbitMQ for {to}: "
            f"{first.refused_because} ({first.refusals} in a row). It is tried again {times.at(first.retry_at)}."
            f"{others}"
        )
        to_do = f"Mend that, then publish it at once: {command('delayed', 'release', facts.job_id)}."
        return Explanation(Cause.REFUSED, says, to_do)
    if facts.now - first.due_at > OVERDUE_AFTER:
        late = f"Late by {times.since(first.due_at)}: a delayed message for {to} was due {times.at(first.due_at)}, and"
        if facts.runs("producer"):
            says = f"{late} a producer runs but has not published it yet.{others}"
            return Explanation(Cause.LATE, says, f"See how far the producers are behind: {command('status')}.")
        return Explanation(Cause.NO_PRODUCER, f"{late} no producer runs.{others}", "Start a producer.")
    return Explanation(Cause.NOT_YET, f"Not yet: a delayed message for {to} is due {times.at(first.due_at)}.{others}")


def is_of_message(entry: Entry) -> bool:
    """Tell whether the entry is about a delayed message, not about a job."""
    return "delayed" in entry.details


def explain_last_message(entry: Entry, times: Times) -> Explanation:
    """Say what became of the last delayed message under the id. None waits any more."""
    to = exchange_label(str(entry.details.get("exchange", "?")))
    match entry.what:
        case What.FIRED:
            says = f"A delayed message was published to the exchange {to}, {times.at(entry.at)}{late_by(entry)}."
            return Explanation(Cause.FIRED, says)
        case What.CANCELLED:
            meant = f" It was meant for {times.at(entry.due_at)}." if entry.due_at else ""
            says = f"A delayed message for the exchange {to} was cancelled by {who(entry)}, {times.at(entry.at)}"
            return Explanation(Cause.CANCELLED, f"{says}{noted(entry)}.{meant}")
        case _:
            says = f"No delayed message waits under this id. What is known last: {entry.what}, {times.at(entry.at)}."
            return Explanation(Cause.FORGOTTEN, says)
