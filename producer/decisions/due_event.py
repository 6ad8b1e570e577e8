"""ScheduleDue as it is written to the wire. Pure."""

from datetime import datetime
from functools import lru_cache

import orjson

from producer.decisions.plan import DueJob
from shared.amqp.message import OutgoingMessage
from shared.contract.fields import format_instant, idempotency_key, trace_headers
from shared.contract.messages import DUE_TYPE
from shared.contract.names import Names, due_routing_key
from shared.recurrence import Occurrence

IDEMPOTENCY_HEADER = "idempotency-key"

# All events of a claim are fired at one moment.
_format_fired_at = lru_cache(maxsize=16)(format_instant)


def due_event(job: DueJob, occurrence: Occurrence, sequence: int, fired_at: datetime, names: Names) -> OutgoingMessage:
    due_at = format_instant(occurrence.at)
    key = idempotency_key(job.id, due_at, job.topic, job.trigger_id)
    content: dict[str, object] = {
        "id": job.id,
        "topic": job.topic,
        "sequence": sequence,
        "due_at": due_at,
        "fired_at": _format_fired_at(fired_at),
        "idempotency_key": key,
        # Fragments go in as they are, byte for byte.
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
    )
