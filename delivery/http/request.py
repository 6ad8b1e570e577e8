"""One delivery becomes one HTTP request. Pure."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv6Address
from urllib.parse import quote

import msgspec
import orjson
import yarl
from standardwebhooks import Webhook

from delivery.attempt.retry import CallError, Unanswered
from delivery.attempt.signing import signature_headers
from delivery.model import Delivery
from shared.contract.address_rules import AddressRules
from shared.contract.fields import AS_INSTANTS, trace_headers
from shared.version import VERSION

USER_AGENT = f"Duebell/{VERSION}"

_AUTHORITY = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]*)?", re.ASCII | re.IGNORECASE)
# Characters that are sent as they were written. % is one of them: an escape is not escaped again.
_SAFE_IN_PATH = "%/:;=@,!$&'()*+~[]\\|^"
_SAFE_IN_QUERY = _SAFE_IN_PATH + "?`{}"


class Request(msgspec.Struct, frozen=True, gc=False):
    """A webhook call that is ready to be sent."""

    target: yarl.URL
    headers: dict[str, str]
    body: bytes
    timeout: float


def prepare(
    delivery: Delivery, signers: Sequence[Webhook] | None, rules: AddressRules, now: datetime
) -> Request | Unanswered:
    """Build the request of a delivery. Return Unanswered if it cannot be sent.

    `signers` belong to the delivery's secret; None means that this process does not know the secret.
    """
    try:
        target = target_of(delivery.url)
    except ValueError:
        return Unanswered(CallError.INVALID_URL)
    if not rules.allows_port(target.port or 0):
        return Unanswered(CallError.FORBIDDEN_PORT, f"port {target.port} is not one of WEBHOOK_ALLOW_PORTS")
    body = request_body(delivery)
    headers = _common_headers(delivery.headers) | {"X-Idempotency-Key": delivery.idempotency_key}
    if delivery.traceparent is not None:
        headers |= trace_headers(delivery.traceparent)
    if delivery.secret is not None:
        if not signers:
            return Unanswered(CallError.SECRET_MISSING)
        headers |= signature_headers(signers, delivery.idempotency_key, body, now)
    return Request(target, headers, body, delivery.timeout_seconds)


@lru_cache(maxsize=1024)
def _common_headers(own_headers: str) -> dict[str, str]:
    """Join the headers of the schedule's webhook and Duebell's own. No name is in both: see `Webhook` in
    shared.contract.messages. All deliveries of the webhook share the dict, so callers must not change it.
    """
    own = {name: value for name, value in orjson.loads(own_headers).items() if name.lower() != "accept-encoding"}
    return {
        **({} if any(name.lower() == "accept" for name in own) else {"Accept": "*/*"}),
        **own,
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        # The start of the answer is kept as it comes: a compressed answer could grow without limit.
        "Accept-Encoding": "identity",
    }


def request_body(delivery: Delivery) -> bytes:
    """Build the JSON body of a call. The payload is in it byte for byte."""
    return orjson.dumps(
        {
            "id": delivery.job_id,
            "topic": delivery.topic,
            "sequence": delivery.sequence,
            **({"trigger_id": delivery.trigger_id} if delivery.trigger_id is not None else {}),
            "due_at": delivery.due_at,
            "fired_at": delivery.fired_at,
            # orjson copies a fragment without reading it.
            "payload": orjson.Fragment(delivery.payload if delivery.payload is not None else "null"),
        },
        option=AS_INSTANTS,
    )


def host_of(url: str) -> str:
    """Return host:port in lower case: the unit of limits and circuit breakers. ValueError: the URL cannot be called."""
    target = target_of(url)
    return f"{target.host_subcomponent}:{target.port}"


@lru_cache(maxsize=1024)
def target_of(text: str) -> yarl.URL:
    """Read the URL of a webhook. The result is checked and called; nothing reads the text again. ValueError: the URL
    cannot be called.

    The host is in lower case and without a last dot. Path and query are as they were scheduled, escape for escape,
    because some are signed. As with other clients, dot segments are resolved (`/a/../b` is `/b`, while `%2e%2e` is a
    name like any other), characters that no URL may hold are escaped (quotes, for example), and a fragment is not sent.
    """
    try:
        url = yarl.URL(text, encoded=True)
        host, port = _host_of_authority(url.raw_authority), url.port
    except ValueError:
        # Not yarl's own text: it quotes the part that it cannot read, which may be a password.
        raise ValueError("cannot be read") from None
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("is not plain ASCII without white space")
    if url.scheme not in {"http", "https"} or not host or not port:
        raise ValueError("is not an http or https address with a host and a port, and without a password")
    here = yarl.URL.build(scheme=url.scheme, host=host, port=port, encoded=True)
    path = here.join(yarl.URL.build(path=quote(url.raw_path, _SAFE_IN_PATH), encoded=True)).raw_path
    # yarl would drop the question mark of an empty query, so here the query is a part of the path.
    _, mark, query = text.partition("#")[0].partition("?")
    return here.with_path(f"{path}{mark}{quote(query, _SAFE_IN_QUERY)}", encoded=True)


def _host_of_authority(authority: str) -> str:
    """Return the host of the authority part of a URL. Empty: it has a user name, a password, or no valid host."""
    read = _AUTHORITY.fullmatch(authority)
    if read is None:
        return ""
    if read["six"]:
        # One spelling for each address: limits and circuit breakers count by host.
        return f"[{IPv6Address(read['six']).compressed}]"
    return read["name"].lower().rstrip(".")
