"""What is wrong with a JSON text, for the error message: which top-level field, and whether it is nested too deep.
Pure, and off the fast path: texts that are right never come here, but for a count of brackets.
"""

import json
from typing import Any

import orjson

# The JSON libraries of the applications that read a payload give up at some depth; this is far from any of them.
MAX_DEPTH = 64


def too_deep_field(body: bytes, content: dict[str, Any]) -> str | None:
    """The top-level field that is nested too deep, if one is. Every level needs a bracket: few brackets, no depth."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return None
    return next((field for field, value in content.items() if _too_deep(value)), None)


def _too_deep(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for container in level
            if isinstance(container, dict | list)
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def where_json_is_wrong(body: bytes) -> str:
    """The top-level field, if a lenient parser can read what the strict one refused (NaN, half a surrogate pair); else
    the body.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return "body"
    if isinstance(content, dict):
        for field, value in content.items():
            try:
                orjson.loads(json.dumps({field: value}))
            except orjson.JSONDecodeError:
                return str(field.encode(errors="replace").decode()) if isinstance(field, str) else "body"
    return "body"
