"""A schedule as a command line, as Python and as a message, to be sent again elsewhere. The payload's text is kept as
it is, so that long numbers keep their digits. Pure.
"""

import shlex
from collections.abc import Mapping
from typing import Any

import orjson

_OPTIONS = {
    "at": "--at", "rrule": "--rrule", "cron": "--cron", "start_at": "--start-at", "timezone": "--timezone",
    "dst_gap": "--dst-gap", "dst_fold": "--dst-fold", "topic": "--topic", "misfire": "--misfire",
    "misfire_grace_seconds": "--misfire-grace-seconds",
}  # fmt: skip
_WEBHOOK_OPTIONS = {
    "url": "--webhook",
    "timeout_seconds": "--timeout-seconds",
    "max_retries": "--max-retries",
    "secret": "--secret",
}


def as_json(content: Mapping[str, Any], payload: str | None) -> str:
    """Return the body of the ScheduleRequest."""
    whole = {**content, **({"payload": orjson.Fragment(payload)} if payload is not None else {})}
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode()


def as_command_line(content: Mapping[str, Any], payload: str | None) -> str:
    """Return a command line of `duebell schedule`."""
    parts = ["duebell schedule", shlex.quote(content["id"])]
    if "every_seconds" in content:
        parts.append(f"--every {content['every_seconds']}s")
    parts += [
        f"{option} {_quoted(content[name])}" for name, option in _OPTIONS.items() if content.get(name) is not None
    ]
    parts += [f"--label {_quoted(f'{key}={value}')}" for key, value in content.get("labels", {}).items()]
    webhook = content.get("webhook") or {}
    parts += [f"{option} {_quoted(webhook[name])}" for name, option in _WEBHOOK_OPTIONS.items() if name in webhook]
    parts += [f"--header {_quoted(f'{name}: {value}')}" for name, value in webhook.get("headers", {}).items()]
    if payload is not None:
        parts.append(f"--payload {shlex.quote(payload)}")
    return " \\\n    ".join([" ".join(parts[:2]), *parts[2:]])


def as_python(content: Mapping[str, Any], payload: str | None) -> str:
    """Return a call of the Python client."""
    lines = [f"await duebell.schedule(\n    {content['id']!r},"]
    lines += [f"    {name}={value!r}," for name, value in content.items() if name != "id" and value is not None]
    if payload is not None:
        lines.append(f"    payload=json.loads({payload!r}),")
    return "\n".join([*lines, ")"])


def _quoted(value: object) -> str:
    return shlex.quote(str(value))
