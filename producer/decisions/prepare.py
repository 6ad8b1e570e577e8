"""From a claim to its messages: what each job does now, and the events that say so. Nothing is published yet."""

from dataclasses import dataclass
from datetime import datetime

from producer.decisions.due_event import due_event
from producer.decisions.plan import Claim, DueJob, Plan, plan
from producer.decisions.settle import PlannedFiring
from shared.amqp.message import OutgoingMessage
from shared.contract.fields import trace_headers
from shared.contract.names import Names
from shared.recurrence import BadRule
from shared.runtime.logs import get_log
from shared.runtime.loops import MAX_HOLD_SECONDS, LoopYielder

# One claim's worth: as much as a broker confirms well within the timeout, and as fits into memory several times over.
MAX_MESSAGES = 1000
MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PreparedClaim:
    """The jobs of a claim, as many as fit into its bounds, and their messages."""

    claim: Claim
    firings: list[PlannedFiring]
    messages: list[OutgoingMessage]

    @property
    def leaves_jobs(self) -> bool:
        """Some jobs did not fit. They are left as they are: still due, for the next claim."""
        return len(self.firings) < len(self.claim.jobs)


async def prepare(claim: Claim, names: Names, yielder: LoopYielder) -> PreparedClaim:
    """Plan the claim's jobs and write their messages, up to the bounds of one claim."""
    firings: list[PlannedFiring] = []
    messages: list[OutgoingMessage] = []
    size = 0
    for job in claim.jobs:
        if len(messages) >= MAX_MESSAGES or size >= MAX_BYTES:
            break
        first = len(messages)
        planned = _plan(job, claim.fires_at, yielder)
        for number, occurrence in enumerate(planned.ringing if planned else (), start=job.sequence + 1):
            message = due_event(job, occurrence, number, claim.fires_at, names)
            size += len(message.body)
            messages.append(message)
        firings.append(PlannedFiring(job, planned, slice(first, len(messages))))
        if yielder.is_due:
            await yielder.give_way()
    return PreparedClaim(claim, firings, messages)


def _plan(job: DueJob, now: datetime, yielder: LoopYielder) -> Plan | None:
    """The job's plan; None if its rule cannot be read."""
    try:
        planned = plan(job, now, enough=lambda: yielder.held > MAX_HOLD_SECONDS)
    except Exception as error:  # noqa: BLE001 - the boundary of one job: it waits alone, and the others ring
        reason = str(error) if isinstance(error, BadRule) else type(error).__name__
        get_log().error("rule_unreadable", id=job.id, error=reason, **trace_headers(job.traceparent))
        return None
    if planned.cut_short:
        get_log().warning("rule_cut_short", id=job.id, **trace_headers(job.traceparent))
    return planned
