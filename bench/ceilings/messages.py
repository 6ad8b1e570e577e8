"""The messages that ceilings publish: those that the services themselves would, byte for byte but for their numbers."""

from datetime import UTC, datetime, timedelta

import orjson

from bench.filling import PAYLOAD, TOPIC
from bench.rig import NAMES
from producer.events import due_event
from producer.planning import DueJob
from shared.messages import REQUEST_TYPE, Misfire
from shared.names import REQUEST_KEY
from shared.outgoing import Outgoing
from shared.recurrence import Occurrence

NOW = datetime.now(UTC)


def due_events(count: int, webhook_url: str | None = None) -> list[Outgoing]:
    return [_due(n, webhook_url) for n in range(count)]


def _due(number: int, webhook_url: str | None) -> Outgoing:
    job = DueJob(
        id=f"due-{number}",
        version=1,
        topic=TOPIC,
        payload=PAYLOAD,
        webhook=orjson.dumps({"url": webhook_url}).decode() if webhook_url else None,
        rule=None,
        occurrence=Occurrence(NOW - timedelta(milliseconds=number), 1),
        misfire=Misfire.ALL,
        misfire_grace=timedelta(minutes=1),
        sequence=0,
        refusals=0,
    )
    return due_event(job, job.occurrence, 1, NOW, NAMES)


def requests(count: int, name: str) -> list[Outgoing]:
    return [_request(f"{name}{n}") for n in range(count)]


def _request(job_id: str) -> Outgoing:
    content = {
        "id": job_id,
        "at": (NOW + timedelta(days=1)).isoformat(),
        "topic": TOPIC,
        "payload": orjson.Fragment(PAYLOAD),
    }
    return Outgoing(NAMES.commands, REQUEST_KEY, orjson.dumps(content), type=REQUEST_TYPE)
