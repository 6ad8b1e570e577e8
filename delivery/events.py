"""`read_due` reads a ScheduleDue: an AMQP message becomes a new delivery, or the reasons for parking it. Pure.

There are two readers. The fast one reads events as the producer writes them. Every other event goes to the
complete one, which accepts more and says what is wrong.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec
import orjson
from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, ValidationError

from delivery.http.request import host_of
from shared.amqp.message import IncomingMessage
from shared.contract.fields import read_traceparent, require_year_in_range
from shared.contract.json_depth import say_too_deep, too_deep_field
from shared.contract.messages import DUE_TYPE, ScheduleDue, Webhook
from shared.contract.names import OPERATOR_HEADER
from shared.contract.replay import REPLAY_TYPE, read_replay
from shared.contract.wording import limit_errors


class NewDelivery(msgspec.Struct, frozen=True, gc=False):
    """A row of `deliveries` that is to be stored."""

    job_id: str
    idempotency_key: str
    topic: str
    sequence: int
    due_at: datetime
    fired_at: datetime
    payload: str  # JSON text, byte for byte as in the event
    url: str
    host: str
    headers: str  # JSON text
    timeout_seconds: float
    max_retries: int
    secret: str | None
    traceparent: str | None = None
    trigger_id: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """Failed deliveries that are to be tried again, and who asked for it."""

    delivery_ids: tuple[int, ...]
    operator: str | None
    by_user: str | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event that is to be parked. Each error starts with the name of its field."""

    errors: tuple[str, ...]


def _in_range(moment: datetime) -> datetime:
    require_year_in_range(moment)
    instant = moment.astimezone(UTC)
    require_year_in_range(instant)
    return instant


_Instant = Annotated[AwareDatetime, AfterValidator(_in_range)]


class _Webhook(Webhook):
    # A newer producer may write fields that this release does not know.
    model_config = ConfigDict(extra="ignore")


class _CompleteDue(ScheduleDue):
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


class _FastDue(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A ScheduleDue as the producer writes it. Reading it takes a tenth of the time of `_CompleteDue`, which
    accepts all events that this class accepts, and more.
    """

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    topic: Annotated[str, msgspec.Meta(max_length=128, pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
    sequence: Annotated[int, msgspec.Meta(ge=1, lt=2**62)]
    due_at: msgspec.Raw
    fired_at: msgspec.Raw
    idempotency_key: Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,200}$")]
    webhook: msgspec.Raw
    payload: msgspec.Raw
    trigger_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class _ReadWebhook(NamedTuple):
    url: str
    host: str
    headers: str  # JSON text
    timeout_seconds: float
    max_retries: int
    secret: str | None


_fast_due = msgspec.json.Decoder(_FastDue)
_instant = msgspec.json.Decoder(datetime).decode
_MAX_INSTANT_BYTES = len('"2026-07-10T09:00:00.123456Z"')


def read_message(message: IncomingMessage) -> NewDelivery | Replay | Unreadable:
    """Read a message of the queue of due events: a ScheduleDue, or the console's DeliveryReplay."""
    if message.type != REPLAY_TYPE or message.unreadable:
        return read_due(message)
    try:
        asked = read_replay(message.body)
    except ValueError as error:
        return _unreadable(str(error))
    operator = message.headers.get(OPERATOR_HEADER)
    return Replay(asked.deliveries, operator if isinstance(operator, str) else None, message.user_id)


def read_due(message: IncomingMessage) -> NewDelivery | Unreadable:
    """Read a ScheduleDue."""
    if message.unreadable or message.type not in {None, "", DUE_TYPE}:
        return _unreadable(message.unreadable or f"type: {message.type!r} is not {DUE_TYPE}")
    if field := too_deep_field(message.body):
        return _unreadable(say_too_deep(field))
    try:
        return _read_fast(message)
    except (ValueError, msgspec.MsgspecError):
        return _read_completely(message)


def _read_fast(message: IncomingMessage) -> NewDelivery:
    """Read an event as the producer writes it. Raises for every other event."""
    due = _fast_due.decode(message.body)
    payload = bytes(due.payload)
    orjson.loads(payload)  # raises if it is not JSON: the decoder has only found its end
    if "\0" in due.id or "\0" in (due.trigger_id or "") or "\n" in due.topic or "\n" in due.idempotency_key:
        raise ValueError("a character that is not allowed")
    return NewDelivery(
        job_id=due.id,
        idempotency_key=due.idempotency_key,
        topic=due.topic,
        sequence=due.sequence,
        due_at=_producer_instant(due.due_at),
        fired_at=_producer_instant(due.fired_at),
        payload=payload.decode(),
        **_read_webhook(bytes(due.webhook))._asdict(),
        traceparent=read_traceparent(message.headers),
        trigger_id=due.trigger_id,
    )


def _producer_instant(text: msgspec.Raw) -> datetime:
    written = bytes(text)
    moment = _instant(written)
    if moment.tzinfo is not UTC or len(written) > _MAX_INSTANT_BYTES:
        raise ValueError("not in UTC, or finer than a microsecond, which would be rounded here")
    require_year_in_range(moment)
    return moment


# Thousands of events have the same few webhooks.
@lru_cache(maxsize=1024)
def _read_webhook(text: bytes) -> _ReadWebhook:
    return _as_stored(_Webhook.model_validate(orjson.loads(text)))


def _as_stored(webhook: Webhook) -> _ReadWebhook:
    """Turn a webhook into columns of the table. ValueError: its URL cannot be called."""
    return _ReadWebhook(
        webhook.url,
        host_of(webhook.url),
        orjson.dumps(webhook.headers).decode(),
        webhook.timeout_seconds,
        webhook.max_retries,
        webhook.secret,
    )


def _read_completely(message: IncomingMessage) -> NewDelivery | Unreadable:
    try:
        due = _CompleteDue.model_validate(orjson.loads(message.body))
        webhook = _as_stored(due.webhook)
        # The payload's own bytes: numbers, escapes and white space stay as they are.
        payload = bytes(msgspec.json.decode(message.body, type=_PayloadOnly).payload).decode()
    except orjson.JSONDecodeError as error:
        return _unreadable(f"body: {error}")
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        return _unreadable(*(f"{'.'.join(map(str, p['loc'])) or 'body'}: {p['msg']}" for p in problems))
    except msgspec.MsgspecError as error:
        return _unreadable(f"payload: {error}")
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
        **webhook._asdict(),
        traceparent=read_traceparent(message.headers),
        trigger_id=due.trigger_id,
    )


def _unreadable(*errors: str) -> Unreadable:
    return Unreadable(limit_errors(errors))
