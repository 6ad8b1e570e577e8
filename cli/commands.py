"""`duebell schedule`, `cancel`, `pause`, `resume`, `trigger`: one command of the contract each, and its reply."""

import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import orjson
import typer

from cli.command_client import send
from cli.command_runner import run
from cli.errors import BadUsage, Failure
from cli.output import AsJson, Output, Timezone, Yes, require_consent
from cli.selection import labels_of
from cli.stores import Stores
from cli.time_arguments import parse_duration
from consumer.commands.merge import USER_IS_REQUIRED
from shared.contract.fields import format_instant, parse_date_time
from shared.contract.messages import CANCEL_TYPE, PAUSE_TYPE, REQUEST_TYPE, RESUME_TYPE, TRIGGER_TYPE, Misfire, Outcome
from shared.contract.names import CANCEL_KEY, PAUSE_KEY, REQUEST_KEY, RESUME_KEY, TRIGGER_KEY
from shared.recurrence.zones import Fold, Gap

Id = Annotated[str, typer.Argument(help="The schedule's id.", metavar="ID")]
Wait = Annotated[float, typer.Option(help="Seconds to wait for the reply.", min=0.1, max=600)]

UpTo = Annotated[
    int | None, typer.Option("--revision", help="Speaks of every revision up to this one; missing: of any.")
]
Note = Annotated[str | None, typer.Option(help="Why, for people.")]

# What to give, by the beginning of an error of the consumer.
_HINTS = {
    USER_IS_REQUIRED: "say --own to become its owner",
    "at: exactly one of": "say one of --at, --in, --rrule, --cron and --every",
    "timezone: is needed": "say --timezone, such as --timezone Europe/Berlin, or give the instant an offset",
    "id: there is no such job": "look for a part of it: duebell list --search {id}",
}

WHEN, WHAT, HOW = "When (exactly one of --at, --in, --rrule, --cron, --every)", "What", "Webhook"


def schedule(
    id: Id,  # noqa: A002 - the field's own name
    *,
    at: Annotated[
        str | None, typer.Option(help="An instant, or local together with --timezone.", rich_help_panel=WHEN)
    ] = None,
    in_: Annotated[
        str | None, typer.Option("--in", help="So long from now: 90s, 10m, 1h30m, 2d.", rich_help_panel=WHEN)
    ] = None,
    rrule: Annotated[str | None, typer.Option(help="RFC 5545.", rich_help_panel=WHEN)] = None,
    cron: Annotated[str | None, typer.Option(help="Five fields, or @daily, @hourly, ….", rich_help_panel=WHEN)] = None,
    every: Annotated[str | None, typer.Option(help="A plain interval: 90s, 2h.", rich_help_panel=WHEN)] = None,
    start_at: Annotated[str | None, typer.Option(help="Where a rule starts.", rich_help_panel=WHEN)] = None,
    timezone: Annotated[str | None, typer.Option(help="IANA name.", rich_help_panel=WHEN)] = None,
    dst_gap: Annotated[Gap | None, typer.Option(help="A time that the clocks skip.", rich_help_panel=WHEN)] = None,
    dst_fold: Annotated[
        Fold | None, typer.Option(help="A time that the clocks show twice.", rich_help_panel=WHEN)
    ] = None,
    topic: Annotated[str | None, typer.Option(help="The event type.", rich_help_panel=WHAT)] = None,
    payload: Annotated[str | None, typer.Option(help="JSON, or @file, or @- for stdin.", rich_help_panel=WHAT)] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE, to find it by; may be repeated.", rich_help_panel=WHAT)
    ] = None,
    misfire: Annotated[Misfire | None, typer.Option(help="Occurrences that are late.", rich_help_panel=WHAT)] = None,
    misfire_grace_seconds: Annotated[
        int | None, typer.Option(help="From how late on the misfire policy decides.", rich_help_panel=WHAT)
    ] = None,
    revision: Annotated[
        int | None, typer.Option(help="A higher one reschedules, or uses an ended id again.", rich_help_panel=WHAT)
    ] = None,
    own: Annotated[
        bool, typer.Option("--own", help="Make the user of AMQP_URL its owner.", rich_help_panel=WHAT)
    ] = False,
    webhook: Annotated[str | None, typer.Option(help="The address to POST to.", rich_help_panel=HOW)] = None,
    header: Annotated[
        list[str] | None, typer.Option(help="'Name: value'; may be repeated.", rich_help_panel=HOW)
    ] = None,
    timeout_seconds: Annotated[
        float | None, typer.Option(help="How long the receiver may take.", rich_help_panel=HOW)
    ] = None,
    max_retries: Annotated[int | None, typer.Option(help="Attempts after the first one.", rich_help_panel=HOW)] = None,
    secret: Annotated[str | None, typer.Option(help="The name of a signing secret.", rich_help_panel=HOW)] = None,
    wait: Wait = 10.0,
    as_json: AsJson = None,
) -> None:
    """Schedule ID at a moment or by a rule, and wait for the reply.

    Examples:

    duebell schedule tea --in 3m --payload '{"cup": 1}'

    duebell schedule standup --cron '30 9 * * 1-5' --timezone Europe/Berlin --topic team --label team=web

    duebell schedule invoice-42 --at 2027-01-31T09:00:00Z --webhook https://example.com/hook --secret main
    """

    async def work() -> None:
        called = {
            "url": webhook,
            "headers": _headers(header or []) or None,
            "timeout_seconds": timeout_seconds,
            "max_retries": max_retries,
            "secret": secret,
        }
        hook = {name: value for name, value in called.items() if value is not None} or None
        content: dict[str, Any] = {
            "id": id,
            "at": format_instant(datetime.now(UTC) + _duration("--in", in_)) if in_ is not None else at,
            "rrule": rrule,
            "cron": cron,
            "every_seconds": int(_duration("--every", every).total_seconds()) if every is not None else None,
            "start_at": start_at,
            "timezone": timezone,
            "dst_gap": dst_gap,
            "dst_fold": dst_fold,
            "topic": topic,
            "labels": labels_of("--label", label) or None,
            "misfire": misfire,
            "misfire_grace_seconds": misfire_grace_seconds,
            "revision": revision,
            "webhook": hook,
        }
        if in_ is not None and at is not None:
            raise BadUsage("--in: goes without --at")
        content = {name: value for name, value in content.items() if value is not None}
        if payload is not None:
            content["payload"] = _json(payload)
        await _tell(REQUEST_TYPE, REQUEST_KEY, content, wait, Output.of(as_json), own=own)

    run(work())


def cancel(
    id: Id,  # noqa: A002
    *,
    revision: UpTo = None,
    note: Note = None,
    yes: Yes = False,
    wait: Wait = 10.0,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Cancel ID: it rings no more, until a request with a higher revision uses the id again.

    Example: duebell cancel invoice-42 --yes
    """

    async def work() -> None:
        require_consent(f"This cancels {id}", yes=yes)
        await _tell(CANCEL_TYPE, CANCEL_KEY, _content(id, revision, note), wait, Output.of(as_json, timezone))

    run(work())


def pause(
    id: Id,  # noqa: A002
    *,
    revision: UpTo = None,
    note: Note = None,
    wait: Wait = 10.0,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Pause ID: it keeps its place and does not ring until it is resumed.

    Example: duebell pause standup
    """
    run(_tell(PAUSE_TYPE, PAUSE_KEY, _content(id, revision, note), wait, Output.of(as_json, timezone)))


def resume(
    id: Id,  # noqa: A002
    *,
    revision: UpTo = None,
    note: Note = None,
    wait: Wait = 10.0,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Resume ID: what it missed is treated by its misfire policy.

    Example: duebell resume standup
    """
    run(_tell(RESUME_TYPE, RESUME_KEY, _content(id, revision, note), wait, Output.of(as_json, timezone)))


def trigger(
    id: Id,  # noqa: A002
    *,
    trigger_id: Annotated[
        str | None, typer.Option(help="Makes it safe to repeat; without it, a new one is made.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option(help="Instead of the job's own: JSON, or @file, or @- for stdin.")
    ] = None,
    wait: Wait = 10.0,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Ring ID once now, outside its rule.

    Example: duebell trigger standup --trigger-id try-1
    """

    async def work() -> None:
        content: dict[str, Any] = {"id": id, "trigger_id": uuid4().hex if trigger_id is None else trigger_id}
        if payload is not None:
            content["payload"] = _json(payload)
        await _tell(TRIGGER_TYPE, TRIGGER_KEY, content, wait, Output.of(as_json, timezone))

    run(work())


def _content(id: str, revision: int | None, note: str | None) -> dict[str, Any]:  # noqa: A002
    return {name: value for name, value in (("id", id), ("revision", revision), ("note", note)) if value is not None}


async def _tell(type_: str, key: str, content: dict[str, Any], wait: float, out: Output, *, own: bool = True) -> None:
    reply = await send(Stores.from_environment(), type_, key, content, wait, own=own)
    if out.as_json:
        out.json(reply)
    else:
        out.sheet(_readable(reply))
    match reply["outcome"]:
        case Outcome.REJECTED:
            raise Failure(f"{content['id']} was rejected: {_in_words(reply['errors'], content['id'])}")
        case Outcome.UNKNOWN:
            raise Failure(f"{content['id']} is unknown: {_in_words(reply['errors'], content['id'])}")
        case Outcome.DUPLICATE if reply["errors"]:
            raise Failure(f"nothing was changed for {content['id']}: {_in_words(reply['errors'], content['id'])}")


def _readable(reply: dict[str, Any]) -> dict[str, Any]:
    """Return what the reply says, with its instants as instants: they are shown in the zone of the reader."""
    said = {name: value for name, value in reply.items() if value not in (None, [])}
    if "next_run_at" in said:
        said["next_run_at"] = parse_date_time(said["next_run_at"])
    if "upcoming" in said:
        said = {**said, "upcoming": None} | {
            f"upcoming {number}": parse_date_time(instant) for number, instant in enumerate(said["upcoming"], 1)
        }
    return said


def _in_words(errors: list[str], job_id: str) -> str:
    """Add to the errors what the command line can do about them."""
    hints = [hint for beginning, hint in _HINTS.items() if any(error.startswith(beginning) for error in errors)]
    return "; ".join([*errors, *hints]).replace("{id}", shlex.quote(job_id))


def _duration(option: str, text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadUsage(f"{option}: {error}") from None


def _headers(given: list[str]) -> dict[str, str]:
    headers = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not colon:
            raise BadUsage(f"--header: {text!r} is not of the form 'Name: value'")
        headers[name.strip()] = value.strip()
    return headers


def _json(text: str) -> orjson.Fragment:
    """Check that the text is JSON. It is sent byte for byte as it was typed."""
    try:
        if text.startswith("@"):
            text = sys.stdin.read() if text == "@-" else Path(text[1:]).read_text(encoding="utf-8")
        orjson.loads(text)
        return orjson.Fragment(text)
    except OSError as error:
        raise BadUsage(f"--payload: cannot read {text[1:]}: {error.strerror}") from None
    except (orjson.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadUsage(f"--payload: is not JSON: {error}") from None
