"""What became of the last occurrence of a job. Pure."""

from shared.contract.history import What
from shared.contract.job_status import OPEN
from shared.contract.names import due_routing_key
from shared.why.explanation import Cause, Explanation
from shared.why.facts import Entry, Facts, Job
from shared.why.sentences import Times, command, counted, late_by
from shared.why.webhook import delivery_of, explain_webhook


def explain_last_firing(facts: Facts, job: Job, times: Times) -> Explanation | None:
    """Say what became of the last occurrence; None if neither the history nor a call of its webhook tells of it."""
    entry = facts.newest(What.FIRED, What.UNROUTED, What.DROPPED)
    if entry is None or _is_outdated(entry, job):
        return _explain_call(facts, job, times)
    if entry.what == What.DROPPED:
        return _dropped(facts, job, entry, times)
    if entry.what == What.UNROUTED:
        return _unrouted(facts, job, entry, times)
    fired = f"Fired {times.at(entry.at)}{late_by(entry)}"
    if job.webhook_url is not None:
        return explain_webhook(facts, fired, entry, times)
    ended = facts.newest(What.ENDED)
    if ended is not None and ended.at >= entry.at and job.next_run_at is None:
        return Explanation(Cause.RULE_ENDED, f"Its rule has ended. {fired}.{_heard_by(facts)}")
    return Explanation(Cause.FIRED, f"{fired}.{_heard_by(facts)}")


def _explain_call(facts: Facts, job: Job, times: Times) -> Explanation | None:
    """Explain the call of the last occurrence by the rows of the job and the delivery. With HISTORY=changes or off the
    history does not tell of the occurrence.
    """
    if job.last_due_at is None:
        return None
    fired = Entry(at=job.last_due_at, what=What.FIRED, sequence=job.sequence, due_at=job.last_due_at)
    if delivery_of(facts, fired) is None:
        return None
    return explain_webhook(facts, f"Fired for {times.at(job.last_due_at)}", fired, times)


def _is_outdated(entry: Entry, job: Job) -> bool:
    """Tell whether the job has fired since, or in a later life of its id. With HISTORY=changes no entry says so."""
    if entry.life is not None and entry.life < job.life:
        return True
    if "trigger_id" in entry.details:
        return False
    if entry.what == What.DROPPED:
        return job.last_due_at is not None and entry.due_at is not None and entry.due_at < job.last_due_at
    return entry.sequence is not None and entry.sequence < job.sequence


def _heard_by(facts: Facts) -> str:
    if not facts.listeners:
        return " RabbitMQ put it into at least one queue."
    names = ", ".join(one.queue for one in facts.listeners)
    return f" RabbitMQ put it into {counted(len(facts.listeners), 'queue')}, as bound now: {names}."


def _unrouted(facts: Facts, job: Job, entry: Entry, times: Times) -> Explanation:
    key = str(entry.details.get("routing_key") or due_routing_key(job.topic, has_webhook=job.webhook_url is not None))
    says = f"Fired {times.at(entry.at)}, and no queue was bound for its routing key {key}: the event is kept."
    if facts.listeners:
        says += f" By now {counted(len(facts.listeners), 'queue')} would get it."
    resend = command("unrouted", "resend", "--job", facts.job_id)
    return Explanation(Cause.UNROUTED, says, f"Bind a queue for this key, or correct the topic; then {resend}.")


def _dropped(facts: Facts, job: Job, entry: Entry, times: Times) -> Explanation:
    policy = entry.details.get("misfire", job.misfire)
    says = (
        f"Dropped {times.at(entry.at)}: its occurrence of {times.at(entry.due_at)}, was later than "
        f"misfire_grace_seconds allow, and its misfire policy is {policy}."
    )
    if job.status in OPEN:
        return Explanation(Cause.MISFIRE, says, f"Fire it now: {command('trigger', facts.job_id)}.")
    return Explanation(Cause.MISFIRE, says, f"Schedule it again, with a revision higher than {job.revision}.")
