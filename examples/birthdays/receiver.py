"""The webhook that Duebell calls: verifies, then acts once. Any 2xx tells Duebell that it need not call again, so it is
said after the commit, and said to a duplicate as well.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ValidationError
from standardwebhooks import Webhook, WebhookVerificationError

from examples.birthdays.database import transaction
from examples.birthdays.greetings import Effect, Received, Ring, receive
from examples.birthdays.occurrences import local_day

if TYPE_CHECKING:
    from examples.birthdays.database import Pool

MAX_BODY_BYTES = 64 * 1024
LATE = timedelta(hours=1)


class Payload(BaseModel):
    """The payload of this application's requests, which comes back with the call."""

    type: str
    message: str
    timezone: str
    revision: int


class Call(BaseModel):
    id: UUID
    due_at: datetime
    payload: Payload


def receiver(pool: "Pool", secrets: list[str]) -> APIRouter:
    router = APIRouter()
    verifiers = [Webhook(secret) for secret in secrets]

    @router.post("/webhook", include_in_schema=False)
    async def webhook(request: Request) -> Response:
        body = await _read(request)
        if body is None:
            return Response(status_code=413)
        if not _is_genuine(body, dict(request.headers), verifiers):
            structlog.get_logger().warning("signature_refused")
            return Response("the signature does not verify\n", status_code=401)
        try:
            call = Call.model_validate_json(body)
            # The id of the webhook is the idempotency key, and is signed; the header X-Idempotency-Key is not.
            ring = _ring(call, request.headers["webhook-id"])
        except (ValidationError, ValueError, OverflowError, KeyError) as error:
            structlog.get_logger().error("call_not_understood", problem=str(error))
            return Response("no birthday of this application\n", status_code=400)
        async with transaction(pool) as connection:
            received = await receive(connection, ring)
        _log(ring, received)
        return Response(f"{received.effect}\n", media_type="text/plain")

    return router


async def _read(request: Request) -> bytes | None:
    """Read the body of a call. Return None if it is too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return None
    return body


def _is_genuine(body: bytes, headers: dict[str, str], verifiers: list[Webhook]) -> bool:
    for verifier in verifiers:
        try:
            verifier.verify(body, headers, json_parse=False)
            return True
        except (WebhookVerificationError, ValueError):  # the latter for headers that are not even well-formed
            continue
    return False


def _ring(call: Call, key: str) -> Ring:
    payload = call.payload
    if call.due_at.tzinfo is None:
        raise ValueError("due_at has no offset")
    occurs_on = local_day(call.due_at, payload.timezone)
    return Ring(key, call.id, payload.type, payload.message, payload.revision, call.due_at, occurs_on)


def _log(ring: Ring, received: Received) -> None:
    log = structlog.get_logger().bind(id=str(ring.event_id), idempotency_key=ring.key)
    if received.effect is not Effect.GREETED:
        log.info("no_effect", reason=received.effect)
        return
    log.info("greeted", type=ring.type, occurs_on=ring.occurs_on.isoformat(), revision=ring.revision)
    if received.lateness_seconds > LATE.total_seconds():
        minutes = int(received.lateness_seconds // 60)
        log.warning("greeted_late", due_at=ring.due_at.isoformat(), late_minutes=minutes)
    for revision in received.too_late:
        log.warning("skipped", revision=revision, reason="the greeting was on its way with the old data")
