"""Reading a ScheduleDue: bytes and AMQP properties in, a delivery to keep or the reasons for parking it out. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import orjson
from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, ValidationError

from delivery.request import host_of
from shared.inbox import Received
from shared.instants import require_year_in_range
from shared.messages import DUE_TYPE, ScheduleDue, Webhook
from shared.tracing import read_traceparent

MAX_ERRORS = 10
MAX_ERROR_LENGTH = 300


@dataclass(frozen=True, slots=True)
class NewDelivery:
    job_id: str
    idempotency_key: str
    topic: str
    sequence: int
    due_at: datetime
    fired_at: datetime
    payload: str  # JSON text, as it came
    url: str
    host: str
    headers: str  # JSON text
    timeout_seconds: float
    max_retries: int
    secret: str | None
    traceparent: str | None = None
    trigger_id: str | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Each error starts with the field that it is about."""

    errors: tuple[str, ...]


def _in_range(moment: datetime) -> datetime:
    require_year_in_range(moment)
    instant = moment.astimezone(UTC)
    require_year_in_range(instant)
    return instant


_Instant = Annotated[AwareDatetime, AfterValidator(_in_range)]


class _Webhook(Webhook):
    # A newer producer may say more than we know.
    model_config = ConfigDict(extra="ignore")


class _WebhookDue(ScheduleDue):
    """A ScheduleDue as this service needs it: with a webhook, and with a key that can be a header."""

    id: str = Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")
    topic: str = Field(max_length=128, pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")
    sequence: int = Field(ge=1, lt=2**63)
    due_at: _Instant
    fired_at: _Instant
    idempotency_key: str = Field(pattern=r"^[!-~]{1,200}$")
    trigger_id: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"^[^\x00]*$")
    webhook: _Webhook


class _PayloadOnly(msgspec.Struct):
    payload: msgspec.Raw = msgspec.Raw(b"null")


def read_due(message: Received) -> NewDelivery | Unreadable:
    if message.unreadable or message.type not in {None, "", DUE_TYPE}:
        return _unreadable(message.unreadable or f"type: {message.type!r} is not {DUE_TYPE}")
    try:
        due = _WebhookDue.model_validate(orjson.loads(message.body))
        host = host_of(due.webhook.url)
        # The payload's own bytes: numbers, escapes and white space go out as they came in.
        payload = bytes(msgspec.json.decode(message.body, type=_PayloadOnly).payload).decode()
    except orjson.JSONDecodeError as error:
        return _unreadable(f"body: {error}")
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        return _unreadable(*(f"{'.'.join(map(str, p['loc'])) or 'body'}: {p['msg']}" for p in problems))
    except (RecursionError, msgspec.MsgspecError):
        return _unreadable("payload: is nested too deep")
    except ValueError as error:
        return _unreadable(f"webhook.url: {error}")
    return NewDelivery(
        job_id=due.id,
        idempotency_key=due.idempotency_key,
        topic=due.topic,
        sequence=due.sequence,
        due_at=due.due_at,
        fired_at=due.fired_at,
        payload=payload,
        url=due.webhook.url,
        host=host,
        headers=orjson.dumps(due.webhook.headers).decode(),
        timeout_seconds=due.webhook.timeout_seconds,
        max_retries=due.webhook.max_retries,
        secret=due.webhook.secret,
        traceparent=read_traceparent(message.headers),
        trigger_id=due.trigger_id,
    )


def _unreadable(*errors: str) -> Unreadable:
    return Unreadable(tuple(error[:MAX_ERROR_LENGTH] for error in errors[:MAX_ERRORS]))
