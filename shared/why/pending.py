"""Explanations of a job that waits: for its moment, for a producer, or for a broker that takes its event. Pure."""

from datetime import datetime, timedelta

from shared.contract.history import What
from shared.why.explanation import Cause, Explanation
from shared.why.facts import Entry, Facts, Job
from shared.why.firing import explain_last_firing
from shared.why.sentences import Times, command, counted, who

# An occurrence is published within milliseconds of its moment; from here on it counts as late.
OVERDUE_AFTER = timedelta(seconds=3)
# Explanations of the last occurrence that need no words while the job waits for the next.
WELL = frozenset({Cause.FIRED, Cause.WEBHOOK_ANSWERED, Cause.RULE_ENDED})
COMMANDS = (What.ACCEPTED, What.RESCHEDULED)
FIRINGS = (What.FIRED, What.UNROUTED, What.DROPPED)


def explain_pending(facts: Facts, job: Job, times: Times) -> Explanation:
    """Say what the job waits for. A problem with its last occurrence comes before the wait for the next."""
    if job.refusals and job.retry_at is not None and not waits_for_producer(facts, job.retry_at):
        return _refused(facts, job, times)
    if job.next_run_at is not None and facts.now - job.next_run_at > OVERDUE_AFTER:
        return _late(facts, job.next_run_at, times)
    next_run = times.at(job.next_run_at)
    change, firing = facts.newest(*COMMANDS), facts.newest(*FIRINGS)
    # With HISTORY=changes the history does not tell of an occurrence that was published, and the job's row does.
    last_fired_at = max(filter(None, (firing.at if firing else None, job.last_due_at)), default=None)
    is_changed_since = change is not None and (last_fired_at is None or last_fired_at < change.at)
    if not is_changed_since and (last := explain_last_firing(facts, job, times)) and last.cause not in WELL:
        return Explanation(last.cause, f"{last.says} Its next run is {next_run}.", last.to_do)
    if is_changed_since and change is not None and change.what == What.RESCHEDULED:
        says = f"Not yet: due {next_run}. Revision {change.revision} from {who(change)} replaced the one before it, "
        return Explanation(Cause.REPLACED, f"{says}{times.at(change.at)}.{_was_due(change, times)}")
    last_run = f" It last fired for {times.at(job.last_due_at)}." if job.last_due_at is not None else ""
    return Explanation(Cause.NOT_YET, f"Not yet: due {next_run}.{last_run}")


def waits_for_producer(facts: Facts, at: datetime) -> bool:
    """Tell whether the moment of the next try has passed, and no producer runs that could try."""
    return facts.now - at > OVERDUE_AFTER and not facts.runs("producer")


def _was_due(change: Entry, times: Times) -> str:
    moved = change.details.get("changed", {}).get("next_run_at")
    return f" Before, it was due {times.at(datetime.fromisoformat(moved[0]))}." if moved and moved[0] else ""


def _late(facts: Facts, due_at: datetime, times: Times) -> Explanation:
    late = f"Late by {times.since(due_at)}: it was due {times.at(due_at)}, and"
    if facts.runs("producer"):
        says = f"{late} a producer runs but has not published it yet."
        return Explanation(Cause.LATE, says, f"See how far the producers are behind: {command('status')}.")
    seen = facts.last_seen("producer")
    since = f": the last one was seen {times.at(seen)}" if seen else ""
    return Explanation(Cause.NO_PRODUCER, f"{late} no producer runs{since}.", "Start a producer.")


def _refused(facts: Facts, job: Job, times: Times) -> Explanation:
    entry = facts.newest(What.REFUSED)
    refusals = f"{counted(job.refusals, 'attempt')}{_since(facts, times)}"
    again = f"It is tried again {times.at(job.retry_at)}."
    if entry is not None and "routing_key" not in entry.details:
        says = f"The producer cannot read its rule ({refusals})."
        return Explanation(Cause.RULE_UNREADABLE, says, f"Schedule it again with a rule that it can read. {again}")
    key = entry.details["routing_key"] if entry is not None else job.topic
    full = ", ".join(one.queue for one in facts.listeners or () if one.is_full)
    if full:
        why = f"the queue {full} is full"
    elif entry is not None and entry.details.get("reason") == "returned":
        why = "the queue of the delivery service is not bound"
    else:
        why = "most likely a queue that is bound for this key is full"
    says = f"RabbitMQ refuses its event {key}: {why} ({refusals})."
    return Explanation(Cause.REFUSED, says, f"Make room in that queue, or read it. {again}")


def _since(facts: Facts, times: Times) -> str:
    """Return since when the broker refuses: the oldest of the newest refusals in a row."""
    first = None
    for entry in facts.entries:
        if entry.what == What.REFUSED:
            first = entry
        elif first is not None:
            break
    return f" since {times.at(first.at)}" if first is not None else ""
