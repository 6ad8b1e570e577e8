"""W3C trace context: the `traceparent` that came with a request goes with its events and webhook calls, and stands in
the log lines about them. Duebell adds no spans of its own; it hands on what it was given.
"""

import re
from collections.abc import Mapping
from typing import Any

TRACE_HEADER = "traceparent"

# version-trace_id-parent_id-flags; version ff and ids of zeros only are invalid.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


def read_traceparent(headers: Mapping[str, Any]) -> str | None:
    """None if there is none, or if it is not valid: as the standard says, that is no reason to refuse a message."""
    given = headers.get(TRACE_HEADER)
    return given if isinstance(given, str) and _TRACEPARENT.fullmatch(given) else None


def trace_headers(traceparent: str | None) -> dict[str, str]:
    return {} if traceparent is None else {TRACE_HEADER: traceparent}
