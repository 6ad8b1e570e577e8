"""What is sent: one delivery becomes one HTTP request. Pure."""

from collections.abc import Mapping, Sequence
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
from shared.instants import AS_INSTANTS
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
    """Where a call goes: this reading of its URL is what is checked, and what is called; no other matters.

    Path and query are as they were scheduled, escape for escape: some are signed. As with other clients, dot segments
    are resolved (`/a/../b` is `/b`, while `%2e%2e` is a name like any other), what no URL may hold is escaped (quotes,
    say), and a fragment is not sent.
    """

    scheme: str
    host: str  # in lower case, and in ASCII
    port: int
    head: bytes  # the request's first lines

    @property
    def origin(self) -> tuple[str, str, int]:
        return self[:3]


class Request(msgspec.Struct, frozen=True, gc=False):
    target: Target
    headers: dict[str, str]  # of this delivery alone
    body: bytes
    timeout: float
    common: bytes = b""  # header lines that all deliveries of the webhook have, as they are sent


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
    headers = {"X-Idempotency-Key": delivery.idempotency_key, **trace_headers(delivery.traceparent)}
    if delivery.secret is not None:
        if not signers:
            return Unanswered(CallError.SECRET_MISSING)
        headers |= signature_headers(signers, delivery.idempotency_key, body, now)
    return Request(target, headers, body, delivery.timeout_seconds, _common_lines(delivery.headers))


@lru_cache(maxsize=1024)
def _common_lines(own_headers: str) -> bytes:
    """Those that the schedule asked for, and ours. No name is among both: see Webhook in shared.messages."""
    own = {name: value for name, value in orjson.loads(own_headers).items() if name.lower() != "accept-encoding"}
    return header_lines(
        {
            **({} if any(name.lower() == "accept" for name in own) else {"Accept": "*/*"}),
            **own,
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            # The answer is kept as it comes, up to a cap: a compressed one could unfold without end.
            "Accept-Encoding": "identity",
        }
    )


def header_lines(headers: Mapping[str, str]) -> bytes:
    """ValueError if a header would be more than one line. They are checked when a job is scheduled, too."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
        raise ValueError("a header is not one line")
    return lines.encode()


def wire_format(request: Request) -> bytes:
    length = b"Content-Length: %d\r\n\r\n" % len(request.body)
    return b"".join((request.target.head, request.common, header_lines(request.headers), length, request.body))


def request_body(delivery: Delivery) -> bytes:
    return orjson.dumps(
        {
            "id": delivery.job_id,
            "topic": delivery.topic,
            "sequence": delivery.sequence,
            **({"trigger_id": delivery.trigger_id} if delivery.trigger_id is not None else {}),
            "due_at": delivery.due_at,
            "fired_at": delivery.fired_at,
            # A fragment goes in as it is, byte for byte.
            "payload": orjson.Fragment(delivery.payload if delivery.payload is not None else "null"),
        },
        option=AS_INSTANTS,
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
