"""What is sent: one delivery becomes one HTTP request. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec
import orjson
from httpx import URL, InvalidURL
from standardwebhooks import Webhook

from delivery.addresses import AddressRules
from delivery.outcomes import CallError, Unanswered
from delivery.signing import signature_headers
from shared.instants import format_instant
from shared.tracing import trace_headers
from shared.version import VERSION

USER_AGENT = f"Duebell/{VERSION}"
DEFAULT_PORTS = {"http": 80, "https": 443}


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A claimed row: ours until its lease ends. (A struct: there are thousands a second.)"""

    id: int
    version: int
    job_id: str
    idempotency_key: str
    topic: str
    sequence: int
    due_at: datetime
    fired_at: datetime
    created_at: datetime
    claimed_at: datetime
    payload: str | None
    url: str
    host: str
    headers: str  # JSON text
    timeout_seconds: float
    max_retries: int
    retry_count: int
    secret: str | None
    traceparent: str | None = None
    trigger_id: str | None = None

    def __repr__(self) -> str:
        """Without what may hold secrets: payload, URL and headers."""
        return f"Delivery(id={self.id}, version={self.version}, idempotency_key={self.idempotency_key!r})"


class Target(NamedTuple):
    """Where a call goes: this reading of its URL is what is checked, and what is called; no other matters."""

    scheme: str
    host: str  # in lower case, and in ASCII
    port: int
    head: bytes  # the request's first lines, path and query as they were scheduled, escape for escape: some are signed

    @property
    def origin(self) -> tuple[str, str, int]:
        return self[:3]


@dataclass(frozen=True, slots=True)
class Request:
    target: Target
    headers: dict[str, str]
    body: bytes
    timeout: float


def prepare(
    delivery: Delivery, signers: Sequence[Webhook] | None, rules: AddressRules, now: datetime
) -> Request | Unanswered:
    """Unanswered if it cannot be sent, for a reason that is known before anybody is called. `signers` are those of the
    delivery's secret, None if nobody knows it.
    """
    try:
        target = target_of(delivery.url)
    except ValueError:
        return Unanswered(CallError.INVALID_URL)
    if not rules.allows_port(target.port):
        return Unanswered(CallError.FORBIDDEN_PORT)
    body = request_body(delivery)
    headers = {
        **_own_headers(delivery.headers),
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Idempotency-Key": delivery.idempotency_key,
        # The answer is kept as it comes, up to a cap: a compressed one could unfold without end.
        "Accept-Encoding": "identity",
        **trace_headers(delivery.traceparent),
    }
    if delivery.secret is not None:
        if not signers:
            return Unanswered(CallError.SECRET_MISSING)
        headers |= signature_headers(signers, delivery.idempotency_key, body, now)
    return Request(target, headers, body, delivery.timeout_seconds)


@lru_cache(maxsize=1024)
def _own_headers(text: str) -> dict[str, str]:
    """Those that the schedule asked for. Not to be changed: the next delivery with the same ones gets the same dict."""
    own = {name: value for name, value in orjson.loads(text).items() if name.lower() != "accept-encoding"}
    return own if any(name.lower() == "accept" for name in own) else {**own, "Accept": "*/*"}


def request_body(delivery: Delivery) -> bytes:
    return orjson.dumps(
        {
            "id": delivery.job_id,
            "topic": delivery.topic,
            "sequence": delivery.sequence,
            **({"trigger_id": delivery.trigger_id} if delivery.trigger_id is not None else {}),
            "due_at": format_instant(delivery.due_at),
            "fired_at": format_instant(delivery.fired_at),
            # A fragment goes in as it is, byte for byte.
            "payload": orjson.Fragment(delivery.payload if delivery.payload is not None else "null"),
        }
    )


def host_of(url: str) -> str:
    """host:port in lower case: what limits and breakers go by. ValueError for what is no address to call."""
    _, host, port, _ = target_of(url)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@lru_cache(maxsize=1024)
def target_of(text: str) -> Target:
    """ValueError for what is no address to call."""
    try:
        url = URL(text)
    except InvalidURL:
        # Without its own words: they quote what it stumbled over, which may be a password.
        raise ValueError("cannot be read") from None
    port = url.port or DEFAULT_PORTS.get(url.scheme, 0)
    host = url.raw_host.decode().lower().rstrip(".")
    if url.scheme not in DEFAULT_PORTS or not host or url.userinfo or not 0 < port < 65536:
        raise ValueError("is not an http or https address with a host, a port and nobody's password")
    head = b"POST %b HTTP/1.1\r\nHost: %b\r\n" % (url.raw_path, url.netloc)
    return Target(url.scheme, host, port, head)
