"""How deep JSON may be nested, found in its text alone. JSON libraries have limits of their own, which differ between
libraries and between versions of Python; this one is the same everywhere. Pure.
"""

import re
from itertools import accumulate

# Receivers read a payload with JSON libraries that give up at some depth; this is far below the limit of each of them.
MAX_DEPTH = 64

# A text that is never closed reaches to the end.
_TEXT = rb'"(?:[^"\\]|\\.)*+"?'
_NO_BRACKET = re.compile(_TEXT + rb'|[^][{}"]+', re.DOTALL)
_TOKEN = re.compile(_TEXT + rb"|[][{}]", re.DOTALL)
_STEPS = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}


def too_deep_field(body: bytes) -> str | None:
    """Return the field of a JSON object that is nested deeper than MAX_DEPTH, `body` for other JSON that is, and None
    if nothing is. Each level needs a bracket, so a count of the brackets is enough for nearly all bodies.
    """
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return None
    brackets = _NO_BRACKET.sub(b"", body)
    # The body itself is a level.
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) <= MAX_DEPTH + 1:
        return None
    return _field_of_first_excess(body) if brackets.startswith(b"{") else "body"


def say_too_deep(field: str) -> str:
    return f"{field}: is nested deeper than {MAX_DEPTH} levels"


def _field_of_first_excess(body: bytes) -> str:
    field, depth = "body", 0
    for found in _TOKEN.finditer(body):
        token = found[0]
        if step := _STEPS.get(token[0]):
            depth += step
            if depth > MAX_DEPTH + 1:
                break
        elif depth == 1:  # the last text before a bracket is the name of its field
            field = token[1:-1].decode(errors="replace")
    return field
