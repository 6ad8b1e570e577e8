"""Turns a claim into messages: plans each job, and writes the ScheduleDue event of each occurrence to publish."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import orjson
from msgspec.structs import replace

from producer.decisions.claim import Claim
from producer.decisions.plan import DueJob, Plan, PlannedFiring, plan
from shared.amqp.message import OutgoingMessage
from shared.contract.fields import format_instant, idempotency_key, trace_headers
from shared.contract.messages import DUE_TYPE
from shared.contract.names import IDEMPOTENCY_HEADER, UNROUTED_KEY_HEADER, Names, due_routing_key
from shared.recurrence import BadRule, Occurrence
from shared.runtime.logs import get_log
from shared.runtime.loops import MAX_HOLD_SECONDS, LoopYielder

# The bounds of one claim: the broker confirms as much well within the publish timeout, and it fits into memory several
# times over.
MAX_CLAIM_MESSAGES = 1000
MAX_CLAIM_BYTES = 8 * 1024 * 1024


# All events of a claim have the same fired_at.
_format_fired_at = lru_cache(maxsize=16)(format_instant)


@dataclass(frozen=True, slots=True)
class PreparedClaim:
    """A claim with the firings of its jobs, as many as fit into the bounds of one claim, and their messages."""

    claim: Claim[DueJob]
    firings: list[PlannedFiring]
    messages: list[OutgoingMessage]

    @property
    def taken(self) -> int:
        """How many of the claim's jobs fit."""
        return len(self.firings)

    @property
    def leaves_rows(self) -> bool:
        """True if some jobs did not fit. Their rows stay unchanged: they are still due, for the next claim."""
        return len(self.firings) < len(self.claim.rows)


async def prepare(claim: Claim[DueJob], names: Names, yielder: LoopYielder) -> PreparedClaim:
    """Plan the claim's jobs and write their messages, up to the bounds of one claim."""
    firings: list[PlannedFiring] = []
    messages: list[OutgoingMessage] = []
    size = 0
    for job in claim.rows:
        if len(messages) >= MAX_CLAIM_MESSAGES or size >= MAX_CLAIM_BYTES:
            break
        first = len(messages)
        planned = _plan(job, claim.fired_at, yielder)
        for number, occurrence in enumerate(planned.publish_now if planned else (), start=job.sequence + 1):
            message = due_event(job, occurrence, number, claim.fired_at, names)
            size += len(message.body)
            messages.append(message)
        firings.append(PlannedFiring(job, planned, slice(first, len(messages))))
        if yielder.is_due:
            await yielder.give_way()
    return PreparedClaim(claim, firings, messages)


def _plan(job: DueJob, now: datetime, yielder: LoopYielder) -> Plan | None:
    """Plan the job. None: its rule cannot be read."""
    try:
        planned = plan(job, now, is_out_of_time=lambda: yielder.held > MAX_HOLD_SECONDS)
    except Exception as error:  # noqa: BLE001 - the boundary of one job: it waits alone, and the others are fired
        reason = str(error) if isinstance(error, BadRule) else type(error).__name__
        get_log().error("rule_unreadable", id=job.id, error=reason, **trace_headers(job.traceparent))
        return None
    if planned.cut_short:
        get_log().warning("rule_cut_short", id=job.id, **trace_headers(job.traceparent))
    return planned


def due_event(job: DueJob, occurrence: Occurrence, sequence: int, fired_at: datetime, names: Names) -> OutgoingMessage:
    """Write the ScheduleDue of one occurrence. Published again, it has the same idempotency key."""
    due_at = format_instant(occurrence.at)
    key = idempotency_key(job.id, due_at, job.topic, job.trigger_id, job.life)
    content: dict[str, object] = {
        "id": job.id,
        "topic": job.topic,
        "sequence": sequence,
        "due_at": due_at,
        "fired_at": _format_fired_at(fired_at),
        "idempotency_key": key,
        # A Fragment is copied byte for byte.
        "payload": orjson.Fragment(job.payload if job.payload is not None else "null"),
    }
    if job.trigger_id is not None:
        content["trigger_id"] = job.trigger_id
    if job.webhook is not None:
        content["webhook"] = orjson.Fragment(job.webhook)
    return OutgoingMessage(
        exchange=names.events,
        routing_key=due_routing_key(job.topic, has_webhook=job.webhook is not None),
        body=orjson.dumps(content),
        type=DUE_TYPE,
        timestamp=fired_at,
        headers={IDEMPOTENCY_HEADER: key, **trace_headers(job.traceparent)},
        message_id=key,
        # Delivery's queue has to be bound for events of webhooks.
        may_be_unrouted=job.webhook is None,
    )


def unrouted_copy(event: OutgoingMessage, names: Names) -> OutgoingMessage:
    """Return the copy of an event that no queue is bound for, as it is kept in `scheduler.unrouted`."""
    return replace(
        event,
        exchange=names.unrouted_copies,
        headers={**event.headers, UNROUTED_KEY_HEADER: event.routing_key},
        may_be_unrouted=False,
    )
