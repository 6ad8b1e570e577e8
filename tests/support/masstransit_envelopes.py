"""Envelopes as MassTransit sends them to a scheduler, written from its public documentation and contracts."""

import json
from pathlib import Path
from typing import Any

ENVELOPES = Path(__file__).parent / "masstransit"
CONTENT_TYPE = "application/vnd.masstransit+json"


def an_envelope(name: str, *, schedule: dict[str, Any] | None = None, **message: Any) -> dict[str, Any]:
    """Return an envelope with some fields of its message, or of the schedule in it, changed."""
    envelope: dict[str, Any] = json.loads((ENVELOPES / f"{name}.json").read_text())
    envelope["message"] |= message
    if schedule is not None:
        envelope["message"]["schedule"] |= schedule
    return envelope
