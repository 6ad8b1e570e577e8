"""What a delayed message carries, as people and JSON can show it: properties by name, headers, and the body. No I/O."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.amqp.wire import read_properties

MAX_SHOWN_BODY = 256 * 1024


def describe_content(header: bytes, body: bytes) -> dict[str, Any]:
    """Return the properties and headers as plain values, and the body: as text if it is UTF-8, else as Base64. Of a
    long body it has the beginning.
    """
    properties, unreadable = read_properties(header)
    headers = properties.pop("headers", None)
    shown: dict[str, Any] = {
        "properties": {name: _plain(value) for name, value in properties.items()},
        "headers": _plain(headers or {}),
        **({"unreadable": unreadable} if unreadable else {}),
        "body_is_cut": len(body) > MAX_SHOWN_BODY or None,
    }
    try:
        # A character that the cut has divided is left out; other bytes that are not UTF-8 are not text.
        text = body[:MAX_SHOWN_BODY].decode() if len(body) <= MAX_SHOWN_BODY else _beginning(body)
    except UnicodeDecodeError:
        return {**shown, "body_base64": base64.b64encode(body[:MAX_SHOWN_BODY]).decode()}
    return {**shown, "body": text}


def _beginning(body: bytes) -> str:
    cut = MAX_SHOWN_BODY
    while cut > MAX_SHOWN_BODY - 4 and body[cut] & 0xC0 == 0x80:
        cut -= 1
    return body[:cut].decode()


def _plain(value: object) -> Any:  # noqa: ANN401
    match value:
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case bytes() | bytearray():
            return _text_or_base64(value)
        case bool() | str() | float() | datetime() | None:
            return value
        case int():
            return value if -(2**63) <= value < 2**64 else str(value)
        case _:
            return str(value)


def _text_or_base64(value: bytes | bytearray) -> str | dict[str, str]:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
