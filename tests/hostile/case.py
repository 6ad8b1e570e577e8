"""One hostile command: its bytes, and how it must end. A family writes cases with `stored`, `parked` and `refused`; the
job's id is the case's name wherever a case does not say otherwise, so that every stored one can be found again.
"""

import json
from dataclasses import dataclass
from typing import Any

ID = b"@ID@"
AT = "2030-06-01T12:00:00Z"
START = "2030-06-01T12:00:00Z"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    body: bytes
    field: str | None
    """What the first reason must begin with; None: it must be stored."""
    key: str = "schedule.request"
    type: str | None = None
    properties: bytes | None = None
    """Flags and values of the content header as they go over the wire; None: those of a well-behaved client."""
    is_parked: bool = True
    """Whether it is parked when it is refused: a query is not."""


def stored(name: str, content: Any, **options: Any) -> Case:
    return Case(name, _body(name, content), None, **options)


def parked(name: str, field: str, content: Any, **options: Any) -> Case:
    return Case(name, _body(name, content), field, **options)


def refused(name: str, field: str, content: Any, **options: Any) -> Case:
    return Case(name, _body(name, content), field, is_parked=False, **options)


def judged(name: str, field: str | None, content: Any, **options: Any) -> Case:
    """Make a case from a table that has both stored and parked cases."""
    return Case(name, _body(name, content), field, **options)


def a_moment(**fields: Any) -> dict[str, Any]:
    return {"at": AT, **fields}


def a_rule(**fields: Any) -> dict[str, Any]:
    return {"start_at": START, **fields}


def with_webhook(**parts: Any) -> dict[str, Any]:
    return a_moment(webhook={"url": "https://example.com/hook", **parts})


def _body(name: str, content: Any) -> bytes:
    if isinstance(content, bytes):
        return content.replace(ID, json.dumps(name)[1:-1].encode())
    if isinstance(content, dict):
        content = {"id": name, **content}
    return json.dumps(content).encode()
