"""`explain` judges the facts about an id. Pure. The first of these that applies is the explanation:

1. The newest entry of the history is a command that was rejected. If it came when the job had ended, 5 follows it.
2. There is no such job, and delayed messages wait under the id, or the newest entry is of one.
3. There is no such job.
4. The newest entry is a request that changed nothing.
5. What the job's state says. Of a job that waits for a later moment, a problem with its last occurrence comes first.
"""

from datetime import tzinfo
from typing import assert_never

from shared.contract.history import What
from shared.contract.job_status import JobStatus
from shared.why.commands import (
    explain_cancelled,
    explain_duplicate,
    explain_gone,
    explain_paused,
    explain_rejected,
    explain_too_late,
)
from shared.why.delayed import explain_last_message, explain_waiting, is_of_message
from shared.why.explanation import Cause, Explanation
from shared.why.facts import Entry, Facts, Job
from shared.why.firing import explain_last_firing
from shared.why.pending import explain_pending
from shared.why.sentences import Times


def explain(facts: Facts, zone: tzinfo | None = None, *, by_rules_clock: bool = True) -> Explanation:
    """Say why the job has or has not fired. Times are told in the zone of its rule, or else in `zone`, None being that
    of this machine; always in `zone` if they are not told by the rule's clock.
    """
    times = Times(facts, zone, by_rules_clock=by_rules_clock)
    newest = _newest_entry(facts)
    if facts.job is not None:
        return _explain_job(facts, facts.job, newest, times)
    if newest is not None and newest.what == What.REJECTED:
        return explain_rejected(facts, newest, times)
    if facts.delayed:
        return explain_waiting(facts, times)
    if newest is not None and is_of_message(newest):
        return explain_last_message(newest, times)
    return explain_gone(facts, newest, times)


def _explain_job(facts: Facts, job: Job, newest: Entry | None, times: Times) -> Explanation:
    if newest is not None and newest.what == What.REJECTED:
        if newest.details.get("parked") is False:
            return explain_too_late(job, newest, _explain_state(facts, job, times), times)
        return explain_rejected(facts, newest, times)
    if newest is not None and newest.what == What.DUPLICATE:
        return explain_duplicate(facts, job, newest, times)
    return _explain_state(facts, job, times)


def _newest_entry(facts: Facts) -> Entry | None:
    """Return the newest entry, unless the job has fired since. With HISTORY=changes no entry tells of that."""
    newest = next(iter(facts.entries), None)
    last_due_at = facts.job.last_due_at if facts.job is not None else None
    return None if newest and last_due_at and newest.at < last_due_at else newest


def _explain_state(facts: Facts, job: Job, times: Times) -> Explanation:
    match job.status:
        case JobStatus.CANCELLED:
            return explain_cancelled(facts, job, times)
        case JobStatus.PAUSED:
            return explain_paused(facts, job, times)
        case JobStatus.PENDING:
            return explain_pending(facts, job, times)
        case JobStatus.DONE:
            return explain_last_firing(facts, job, times) or _explain_without_history(job, times)
        case _:
            assert_never(job.status)


def _explain_without_history(job: Job, times: Times) -> Explanation:
    """Explain a job that is done and of which the history tells no occurrence: HISTORY=off, or retention."""
    if job.is_rule:
        return Explanation(Cause.RULE_ENDED, f"Its rule has ended. It last fired for {times.at(job.last_due_at)}.")
    if job.last_due_at is None:
        return Explanation(Cause.MISFIRE, f"Its occurrence was dropped by its misfire policy, which is {job.misfire}.")
    says = f"Fired for {times.at(job.last_due_at)}. The history does not tell how."
    return Explanation(Cause.FIRED, says)
