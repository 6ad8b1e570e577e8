"""The fields of messages and of their headers: how each is written, and all checks that need only the field itself. An
instant is RFC 3339 with an offset, or a local date-time that needs a time zone. Pure.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

_TOPIC = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)
_NAME = r"^[A-Za-z0-9_-]{1,100}$"
# Two parsers must not read a host in two ways: so no escapes, no zones, no dots in a row.
_LABEL = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}"
_ALLOWED_HOST = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}\.?|\[(?P<six>[0-9A-Fa-f:.]+)\]", re.ASCII)
# Not the standard library's parser: its versions differ in which hosts they refuse.
_HTTP_URL = re.compile(r"https?://(?P<authority>[^/?#]*)(?:[/?#].*)?", re.ASCII | re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:]*)(?::(?P<port>.*))?")
_MAX_PORT = 65_535
_MAX_HOST_LENGTH = 253
# Resolvers read such a name as an IPv4 address: decimal, octal or hexadecimal, in four parts or fewer.
_ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[Xx][0-9A-Fa-f]*)\.?", re.ASCII)

FIRST_YEAR = 1900
LAST_YEAR = 2199

# What a form's date or local date-time field gives.
_SHORTENED = re.compile(r"\d{4}-\d\d-\d\d(?P<time>[Tt ]\d\d:\d\d([Zz]|[+-]\d\d:[0-5]\d)?)?", re.ASCII)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:[0-5]\d)?", re.ASCII)

TRACE_HEADER = "traceparent"

# version-trace_id-parent_id-flags; version ff and ids of zeros only are invalid.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)

# Headers that belong to the connection, to HTTP itself or to Duebell.
_RESERVED_HEADERS = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade", "host", "content-length", "content-type", "expect", "user-agent",
        "x-idempotency-key", "webhook-id", "webhook-timestamp", "webhook-signature", "traceparent",
    }
)  # fmt: skip


def _check_no_nul(text: str) -> str:
    # Postgres cannot store NUL as text. A payload may contain it, because json keeps it as an escape.
    if "\0" in text:
        raise ValueError("must not contain NUL")
    return text


def _check_topic(text: str) -> str:
    if not _TOPIC.fullmatch(text):
        raise ValueError("must be words of A-Z, a-z, 0-9, _ and - joined by dots, such as invoices.reminder")
    return text


def _check_http_url(text: str) -> str:
    if not text.isascii() or any(c.isspace() or not c.isprintable() for c in text):
        raise ValueError("must be plain ASCII without white space (write IDN hosts as xn--…, the rest with %XX)")
    url = _HTTP_URL.fullmatch(text)
    if url is None or url["authority"][:1] in {"", ":"}:
        raise ValueError("must start with http:// or https:// and a host")
    if "@" in url["authority"]:
        raise ValueError("must not contain a user name or password; send an Authorization header instead")
    authority = _AUTHORITY.fullmatch(url["authority"])
    # No error quotes the value: a password that contains a slash looks like a port.
    if authority is None or not _is_port(authority["port"] or ""):
        raise ValueError("has a host or a port that cannot be read")
    if authority["port"] and int(authority["port"]) == 0:
        raise ValueError("must not name port 0")
    _check_host(authority["host"])
    return text


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) <= _MAX_PORT)


def _check_host(text: str) -> None:
    host = _ALLOWED_HOST.fullmatch(text)
    if host is None or len(text) > _MAX_HOST_LENGTH:
        raise ValueError("must name a host of letters, digits, hyphens and dots, or an IPv6 address in brackets")
    try:
        if host["six"] is not None:
            IPv6Address(host["six"])
        elif _ENDS_IN_A_NUMBER.fullmatch(text):
            IPv4Address(text)  # unless it is four decimal numbers
    except ValueError:
        raise ValueError("has a host that looks like an IP address, and is none") from None


def _check_header_names(headers: Any) -> Any:  # noqa: ANN401 - any value: pydantic checks its type afterwards
    """Check the names before pydantic checks the values, because an error about a value names its header."""
    for number, name in enumerate(headers if isinstance(headers, dict) else (), start=1):
        if not _HEADER_NAME.fullmatch(str(name)):
            # The name is not quoted: by a common mistake it is a whole line, with the value.
            raise ValueError(f"the name of header {number} has a character that no header name has")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{name!r} is set by Duebell or by HTTP itself")
    return headers


def _check_header_values(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"the value of {name!r} has a line break or a character outside printable ASCII")
    return headers


Text = Annotated[str, AfterValidator(_check_no_nul)]
JobId = Annotated[Text, StringConstraints(min_length=1, max_length=200)]
Revision = Annotated[int, Field(ge=0, le=2**63 - 1)]
Note = Annotated[Text, StringConstraints(max_length=500)]
Topic = Annotated[
    str,
    StringConstraints(max_length=128),
    AfterValidator(_check_topic),
    Field(json_schema_extra={"pattern": f"^{_TOPIC.pattern}$"}),
]
HttpUrl = Annotated[
    str,
    StringConstraints(max_length=2000),
    AfterValidator(_check_http_url),
    Field(json_schema_extra={"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"}),
]
Headers = Annotated[
    dict[str, Annotated[str, StringConstraints(max_length=4000)]],
    BeforeValidator(_check_header_names),
    AfterValidator(_check_header_values),
]
SecretName = Annotated[str, StringConstraints(pattern=_NAME)]
IdempotencyKey = Annotated[str, Field(examples=["event-9b62f0e6a3c54d5eb1f0a7c2d8e94f13"])]


def parse_date_time(text: str) -> datetime:
    """Return an aware datetime if the text has an offset, else a naive one. Raises ValueError, which says why."""
    if not _RFC3339.fullmatch(text):
        raise ValueError(_what_is_no_date_time(text))
    if text[11:13] == "24":  # which newer versions of Python would read
        raise ValueError("is not a real date and time: hours are 00 to 23, midnight is 00:00 of the next day")
    # fromisoformat accepts no lower-case t and z. It cuts off digits below a microsecond.
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:  # its text differs between versions of Python
        raise ValueError(
            "is not a real date and time: a month, day, hour, minute, second or offset is out of range"
        ) from None
    require_year_in_range(moment)
    if moment.tzinfo is None:
        return moment
    instant = moment.astimezone(UTC)  # the year may change
    require_year_in_range(instant)
    return instant


def _what_is_no_date_time(text: str) -> str:
    missing = _SHORTENED.fullmatch(text)
    example = "such as 2026-07-10T09:00:00Z or 2026-07-10T09:00:00"
    if missing is None:
        return f"is not a date and time {example}"
    part = "the seconds are" if missing["time"] else "the time of day is"
    return f"{part} missing, in a date and time {example}"


class YearOutOfRange(ValueError):
    """A date and time that is real, in a year that Duebell does not plan for."""


def require_year_in_range(moment: datetime) -> None:
    """Raises YearOutOfRange."""
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise YearOutOfRange(f"year {moment.year} is out of range, {FIRST_YEAR} to {LAST_YEAR}")


# The option with which orjson writes datetimes in UTC like format_instant: a Z, and a fraction only if there is one.
AS_INSTANTS = orjson.OPT_UTC_Z


def format_instant(instant: datetime) -> str:
    """Return an aware datetime as messages write it, in UTC."""
    in_utc = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    # Every event has one, and isoformat() takes more than twice as long.
    return orjson.dumps(in_utc, option=AS_INSTANTS)[1:-1].decode()


def idempotency_key(
    job_id: str, due_at: datetime | str, topic: str, trigger_id: str | None = None, life: int = 1
) -> str:
    """Return the key of an occurrence: the same for every publish and every delivery attempt, on every replica. A
    trigger adds its id, so its key differs from that of an occurrence or another trigger at the same moment. A later
    life of the id adds its number, after the trigger's id or an empty text, which no trigger has for an id: the same
    moment in another life has another key. `due_at` may be a text, if the caller has it as messages write it. NUL
    separates the parts, because no part can contain it: `a-b` + `c` and `a` + `b-c` get different keys.
    """
    parts: tuple[str, ...] = (job_id, due_at if isinstance(due_at, str) else format_instant(due_at), topic)
    if life > 1:
        parts = (*parts, trigger_id or "", str(life))
    elif trigger_id is not None:
        parts = (*parts, trigger_id)
    text = "\0".join(parts)
    return "event-" + sha256(text.encode()).hexdigest()[:32]


def read_traceparent(headers: Mapping[str, Any]) -> str | None:
    """Return the W3C trace context of a message. Duebell passes it on with the job's events and webhook calls and logs
    it, and adds no spans. Return None if it is missing or not valid: the standard says not to refuse the message.
    """
    given = headers.get(TRACE_HEADER)
    return given if isinstance(given, str) and _TRACEPARENT.fullmatch(given) else None


def trace_headers(traceparent: str | None) -> dict[str, str]:
    return {} if traceparent is None else {TRACE_HEADER: traceparent}
