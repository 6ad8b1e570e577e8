"""The kinds of fields that messages are made of, with the checks that need nothing but the field itself. Pure."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

_TOPIC = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)
_NAME = r"^[A-Za-z0-9_-]{1,100}$"

# Headers that belong to the connection, to HTTP itself or to Duebell.
_RESERVED_HEADERS = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade", "host", "content-length", "content-type", "expect", "user-agent",
        "x-idempotency-key", "webhook-id", "webhook-timestamp", "webhook-signature", "traceparent",
    }
)  # fmt: skip


def _without_nul(text: str) -> str:
    # Postgres' text cannot hold it. A payload may: its column is json, where it stays an escape.
    if "\0" in text:
        raise ValueError("must not contain NUL")
    return text


def _a_topic(text: str) -> str:
    if not _TOPIC.fullmatch(text):
        raise ValueError("must be words of A-Z, a-z, 0-9, _ and - joined by dots, such as invoices.reminder")
    return text


def _an_http_url(text: str) -> str:
    if not text.isascii() or any(c.isspace() or not c.isprintable() for c in text):
        raise ValueError("must be plain ASCII without white space (write IDN hosts as xn--…, the rest with %XX)")
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must start with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user name or password; send an Authorization header instead")
    if parts.port == 0:
        raise ValueError("must not name port 0")
    return text


def _sendable_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a header name")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{name!r} is set by Duebell or by HTTP itself")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"the value of {name!r} has a line break or a character outside printable ASCII")
    return headers


Text = Annotated[str, AfterValidator(_without_nul)]
JobId = Annotated[Text, StringConstraints(min_length=1, max_length=200)]
Topic = Annotated[
    str,
    StringConstraints(max_length=128),
    AfterValidator(_a_topic),
    Field(json_schema_extra={"pattern": f"^{_TOPIC.pattern}$"}),
]
HttpUrl = Annotated[
    str,
    StringConstraints(max_length=2000),
    AfterValidator(_an_http_url),
    Field(json_schema_extra={"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"}),
]
Headers = Annotated[dict[str, Annotated[str, StringConstraints(max_length=4000)]], AfterValidator(_sendable_headers)]
SecretName = Annotated[str, StringConstraints(pattern=_NAME)]
IdempotencyKey = Annotated[str, Field(examples=["event-9b62f0e6a3c54d5eb1f0a7c2d8e94f13"])]
