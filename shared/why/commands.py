"""Explanations of the last command for an id. Pure."""

from shared.contract.history import What
from shared.contract.job_status import JobStatus
from shared.contract.wording import NOT_THE_OWNER
from shared.why.explanation import Cause, Explanation
from shared.why.facts import Entry, Facts, Job
from shared.why.sentences import Times, command, noted, who
from shared.why.timeline import describe_entry

FREE = "The id is free: schedule it again."


def _use_again(job: Job) -> str:
    return f"To use the id again, schedule it with a revision higher than {job.revision}."


def explain_rejected(facts: Facts, entry: Entry, times: Times) -> Explanation:
    """Say which command was rejected and why, and what the job does all the same."""
    says = _rejected(entry, times)
    if entry.details.get("parked") is False:
        return Explanation(Cause.TOO_LATE, says, FREE)
    if facts.job is not None:
        says += f" The job stands as before: {facts.job.status}."
    if NOT_THE_OWNER in entry.errors:
        if facts.job is not None and facts.job.owner is not None:
            says += f" Its owner is the AMQP user {facts.job.owner}."
        to_do = f"Send it as the owner, or add {entry.by_user or 'the sender'} to OPERATOR_USERS of the consumers."
        return Explanation(Cause.NOT_THE_OWNER, says, to_do)
    if entry.operator is not None:  # it was answered, and not parked
        return Explanation(Cause.REJECTED, says, "Send it again, mended.")
    parked = command("parked", "list", "--job", facts.job_id)
    return Explanation(Cause.REJECTED, says, f"Send it again, mended. The message as it came is parked: {parked}.")


def explain_too_late(job: Job, entry: Entry, ended: Explanation, times: Times) -> Explanation:
    """Explain a command for a job that had ended, which was answered and not parked. `ended` explains the job."""
    says = f"{_rejected(entry, times)} {ended.says}"
    return Explanation(Cause.TOO_LATE, says, ended.to_do or _use_again(job))


def _rejected(entry: Entry, times: Times) -> str:
    kind = entry.details.get("command", "message")
    return f"The last {kind} was rejected: {'; '.join(entry.errors)}. It came from {who(entry)}, {times.at(entry.at)}."


def explain_gone(facts: Facts, newest: Entry | None, times: Times) -> Explanation:
    """Explain an id without a row in `jobs`."""
    if newest is None:
        search = command("list", "--state", "all", "--search", facts.job_id)
        return Explanation(
            Cause.NEVER_HEARD,
            f"Duebell knows no id {facts.job_id}: no command has named it, or it ended and its retention is over.",
            f"Look for a part of it: {search}; or for a message that could not be read: {command('parked', 'list')}.",
        )
    if newest.what == What.BULK:
        says = f"This is the id of a bulk, not of a job: {describe_entry(newest)}, {times.at(newest.at)}."
        return Explanation(Cause.BULK, f"{says} It came from {who(newest)}.")
    return Explanation(
        Cause.FORGOTTEN,
        f"The job has ended and its row is deleted. What is known of it last: {newest.what}, {times.at(newest.at)}.",
        FREE,
    )


def explain_duplicate(facts: Facts, job: Job, entry: Entry, times: Times) -> Explanation:
    """Explain a request that changed nothing: a cancel came before it, or its revision was in use."""
    to_do = f"Send it with a revision higher than {max(job.revision, entry.revision or 0)}."
    closing = facts.newest(What.CANCELLED, What.CLOSED)
    if job.status is JobStatus.CANCELLED and closing is not None and not _was_accepted(facts, entry.revision):
        says = (
            f"Overtaken by a cancel: {who(closing)} closed the revisions up to {closing.revision}, "
            f"{times.at(closing.at)}{noted(closing)}. The request with revision {entry.revision} came after it, "
            f"{times.at(entry.at)}, and changed nothing."
        )
        return Explanation(Cause.OVERTAKEN, says, to_do)
    says = (
        f"The last request changed nothing: {'; '.join(entry.errors)}. It came from {who(entry)}, {times.at(entry.at)}."
    )
    return Explanation(Cause.DUPLICATE, says, to_do)


def _was_accepted(facts: Facts, revision: int | None) -> bool:
    accepted = (entry for entry in facts.entries if entry.what in {What.ACCEPTED, What.RESCHEDULED})
    return any(entry.revision == revision for entry in accepted)


def explain_cancelled(facts: Facts, job: Job, times: Times) -> Explanation:
    """Say who cancelled the job, when, and for when it was meant."""
    entry = facts.newest(What.CANCELLED, What.CLOSED)
    at = times.at(entry.at if entry else job.finished_at)
    sender = f" by {who(entry)}" if entry else ""
    note = noted(entry) if entry else ""
    to_do = _use_again(job)
    if job.life == 0:
        says = f"Cancelled{sender} before any request came, {at}{note}. The revisions up to {job.revision} are closed."
        return Explanation(Cause.CLOSED, says, to_do)
    meant_for = f" It was meant for {times.at(entry.due_at)}." if entry and entry.due_at else ""
    return Explanation(Cause.CANCELLED, f"Cancelled{sender}, {at}{note}.{meant_for}", to_do)


def explain_paused(facts: Facts, job: Job, times: Times) -> Explanation:
    """Say who paused the job, since when and why."""
    entry = facts.newest(What.PAUSED)
    by = f" by {who(entry)}, {times.at(entry.at)}{noted(entry)}" if entry else ""
    says = f"Paused{by}. Its next run would be {times.at(job.next_run_at)}."
    return Explanation(Cause.PAUSED, says, f"Let it go on: {command('resume', facts.job_id)}.")
