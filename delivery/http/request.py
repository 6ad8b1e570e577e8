"""What is sent: one delivery becomes one HTTP request. Pure."""

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
from delivery.http.address_guard import AddressRules
from delivery.model import Delivery
from shared.contract.fields import AS_INSTANTS, trace_headers
from shared.version import VERSION

USER_AGENT = f"Duebell/{VERSION}"

_AUTHORITY = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]*)?", re.ASCII | re.IGNORECASE)
# Characters that go out as they were written. % is one of them: an escape stays the escape that it is.
_SAFE_IN_PATH = "%/:;=@,!$&'()*+~[]\\|^"
_SAFE_IN_QUERY = _SAFE_IN_PATH + "?`{}"


class Request(msgspec.Struct, frozen=True, gc=False):
    target: yarl.URL
    headers: dict[str, str]
    body: bytes
    timeout: float


def prepare(
    delivery: Delivery, signers: Sequence[Webhook] | None, rules: AddressRules, now: datetime
) -> Request | Unanswered:
    """Unanswered if it cannot be sent, for a reason that is known before the call. `signers` are those of the
    delivery's secret, None if this process does not know the secret.
    """
    try:
        target = target_of(delivery.url)
    except ValueError:
        return Unanswered(CallError.INVALID_URL)
    if not rules.allows_port(target.port or 0):
        return Unanswered(CallError.FORBIDDEN_PORT)
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
    """The headers that the schedule asked for, and Duebell's own. No name is in both: see Webhook in
    shared.contract.messages.
    The dict is shared by all deliveries of the webhook, and must not be changed.
    """
    own = {name: value for name, value in orjson.loads(own_headers).items() if name.lower() != "accept-encoding"}
    return {
        **({} if any(name.lower() == "accept" for name in own) else {"Accept": "*/*"}),
        **own,
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        # The answer is kept as it comes, up to a cap: a compressed one could unfold without end.
        "Accept-Encoding": "identity",
    }


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
    target = target_of(url)
    return f"{target.host_subcomponent}:{target.port}"


@lru_cache(maxsize=1024)
def target_of(text: str) -> yarl.URL:
    """Where a call goes: this reading of the URL is what is checked, and what is called. ValueError for what is no
    address to call.

    The host is in lower case and without a last dot. Path and query are as they were scheduled, escape for escape: some
    are signed. As with other clients, dot segments are resolved (`/a/../b` is `/b`, while `%2e%2e` is a name like any
    other), what no URL may hold is escaped (quotes, say), and a fragment is not sent.
    """
    try:
        url = yarl.URL(text, encoded=True)
        host, port = _host_of_authority(url.raw_authority), url.port
    except ValueError:
        # Without its own words: they quote what it stumbled over, which may be a password.
        raise ValueError("cannot be read") from None
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("is not plain ASCII without white space")
    if url.scheme not in {"http", "https"} or not host or not port:
        raise ValueError("is not an http or https address with a host and a port, and without a password")
    here = yarl.URL.build(scheme=url.scheme, host=host, port=port, encoded=True)
    path = here.join(yarl.URL.build(path=quote(url.raw_path, _SAFE_IN_PATH), encoded=True)).raw_path
    # yarl would drop the mark of an empty query, so here the query is a part of the path.
    _, mark, query = text.partition("#")[0].partition("?")
    return here.with_path(f"{path}{mark}{quote(query, _SAFE_IN_QUERY)}", encoded=True)


def _host_of_authority(authority: str) -> str:
    """Empty if there is a user name, a password or anything else that is no host."""
    read = _AUTHORITY.fullmatch(authority)
    if read is None:
        return ""
    if read["six"]:
        IPv6Address(read["six"])  # ValueError if it is none
        return f"[{read['six'].lower()}]"
    return read["name"].lower().rstrip(".")
