"""Checks a command before it is published, with the code by which the consumer reads commands: the reasons of a refusal
are the same words, and a mistake of an operator is neither parked nor an alert.
"""

from datetime import UTC, datetime
from typing import Any

import orjson

from consumer.commands.parse import RawCommand, Refused, read_command
from shared.contract.messages import Outcome


def rejection_of(type_: str, key: str, body: bytes, max_payload_bytes: int) -> dict[str, Any] | None:
    """Return the reply with which the consumer would reject the command, or None if only the consumer can tell."""
    raw = RawCommand(body, type_, key)
    read = read_command(raw, datetime.now(UTC), max_payload_bytes)
    if not isinstance(read, Refused):
        return None
    return {
        "id": _id_in(body),
        "outcome": Outcome.REJECTED.value,
        "next_run_at": None,
        "upcoming": [],
        "errors": list(read.errors),
    }


def _id_in(body: bytes) -> str | None:
    content = orjson.loads(body)
    return content["id"] if isinstance(content.get("id"), str) else None
