"""The messages that ceilings publish: those that the services themselves would, byte for byte but for their numbers."""

from datetime import UTC, datetime, timedelta

import orjson

from bench.filling import PAYLOAD, TOPIC
from bench.rig import NAMES
from producer.decisions.due_event import due_event
from producer.decisions.plan import DueJob
from shared.amqp.message import OutgoingMessage
from shared.contract.messages import REQUEST_TYPE, Misfire
from shared.contract.names import REQUEST_KEY
from shared.recurrence import Occurrence


def due_events(count: int, webhook_url: str | None = None) -> list[OutgoingMessage]:
    """Make events that are due just now. For events that are a minute late a service would write a line each."""
    now = datetime.now(UTC)
    return [_due(n, now, webhook_url) for n in range(count)]


def _due(number: int, now: datetime, webhook_url: str | None) -> OutgoingMessage:
    job = DueJob(
        id=f"due-{number}",
        version=1,
        topic=TOPIC,
        payload=PAYLOAD,
        webhook=orjson.dumps({"url": webhook_url}).decode() if webhook_url else None,
        rule=None,
        occurrence=Occurrence(now - timedelta(milliseconds=number), 1),
        misfire=Misfire.ALL,
        misfire_grace=timedelta(minutes=1),
        sequence=0,
        refusals=0,
    )
    return due_event(job, job.occurrence, 1, now, NAMES)


def requests(count: int, name: str) -> list[OutgoingMessage]:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    return [_request(f"{name}{n}", tomorrow) for n in range(count)]


def _request(job_id: str, moment: datetime) -> OutgoingMessage:
    content = {
        "id": job_id,
        "at": moment.isoformat(),
        "topic": TOPIC,
        "payload": orjson.Fragment(PAYLOAD),
    }
    return OutgoingMessage(NAMES.commands, REQUEST_KEY, orjson.dumps(content), type=REQUEST_TYPE)
