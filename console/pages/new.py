"""A form for a new schedule, which shows while it is filled in what the consumer would make of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.responses import RedirectResponse, Response

from console.acting import send
from console.commands import Command, read
from console.errors import not_allowed
from console.filling import filled_again
from console.foretelling import foretell, left_out, next_revision, occurrences_of, read_known, rule_in_words
from console.web.context import Visit
from console.web.forms import Form
from console.web.routing import OPERATORS_ONLY
from consumer.commands.parse import Refused
from consumer.commands.schedule import Schedule
from shared.contract.labels import parse_labels
from shared.contract.messages import REQUEST_TYPE, Outcome
from shared.reading.jobs import Job
from shared.recurrence.marked import MarkedOccurrence

RULE_KINDS = ("at", "cron", "rrule", "every_seconds")
_LOCAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_EVERY = re.compile(r"(\d{1,9})\s*(s|m|h|d)?", re.ASCII)
# All numbers of so many digits can be written as JSON.
MAX_DIGITS = 18
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
EMPTY = {
    "id": "", "kind": "at", "at": "", "cron": "", "rrule": "", "every_seconds": "", "start_at": "", "timezone": "",
    "topic": "", "payload": "", "url": "", "headers": "", "secret": "", "timeout_seconds": "", "max_retries": "",
    "misfire": "", "misfire_grace_seconds": "", "dst_gap": "", "dst_fold": "", "revision": "", "labels": "",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Preview:
    """What would become of the form now."""

    says: str
    tone: str
    errors: tuple[str, ...] = ()
    occurrences: tuple[MarkedOccurrence, ...] = ()
    rule: str = ""


async def show(visit: Visit) -> Response:
    if not visit.user.may_act:
        raise not_allowed(OPERATORS_ONLY)
    again = visit.query.get("again", "").replace("\0", "")
    known = await read_known(visit, again) if again else None
    filled = filled_again(known, visit.zone, sees_payloads=visit.user.sees_payloads) if known else {}
    given = {name: value for name, value in visit.query.items() if name in EMPTY}
    values = {**EMPTY, "timezone": str(visit.zone), **filled, **given}
    return _page(visit, values, None)


async def preview(visit: Visit, form: Form) -> Response:
    values = _values(form)
    content, problems = content_of(values)
    seen = await _preview(visit, content, problems)
    return visit.console.renderer.page("new_preview.html", visit, preview=seen)


async def create(visit: Visit, form: Form) -> Response:
    values = _values(form)
    content, problems = content_of(values)
    seen = await _preview(visit, content, problems)
    if problems or seen.errors:
        return _page(visit, values, seen, status=422)
    if "revision" not in content:
        content["revision"] = next_revision(await read_known(visit, content["id"]))
    [verdict] = await send(visit, [Command(REQUEST_TYPE, content, owns=await _has_owner(visit, content["id"]))])
    if verdict.outcome in {Outcome.ACCEPTED, Outcome.RESCHEDULED}:
        return RedirectResponse(visit.console.renderer.url("/schedule", id=content["id"]), 303)
    says = "No answer came in time. It may still be done: look at the schedule in a moment."
    if verdict.outcome is not None:
        says = f"The consumer answered: {verdict.outcome}"
    return _page(visit, values, Preview(says, "bad", verdict.errors), status=422)


def _page(visit: Visit, values: Mapping[str, str], seen: Preview | None, status: int = 200) -> Response:
    return visit.console.renderer.page("new.html", visit, status, values=values, preview=seen, kinds=RULE_KINDS)


def _values(form: Form) -> dict[str, str]:
    return {name: form.text(name) for name in EMPTY}


def content_of(values: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the ScheduleRequest that the form describes, and what of the form cannot be written as one. Pure."""
    problems: list[str] = []
    kind = values["kind"] if values["kind"] in RULE_KINDS else "at"
    content: dict[str, Any] = {"id": values["id"].strip()}
    moment = values[kind].strip()
    content[kind] = (
        _seconds(moment, problems) if kind == "every_seconds" else _complete(moment) if kind == "at" else moment
    )
    if kind != "at" and values["start_at"].strip():
        content["start_at"] = _complete(values["start_at"].strip())
    if kind != "every_seconds" and values["timezone"].strip():
        content["timezone"] = values["timezone"].strip()
    for name in ("topic", "misfire", "dst_gap", "dst_fold"):
        if values[name].strip():
            content[name] = values[name].strip()
    for name in ("misfire_grace_seconds", "revision"):
        _add_number(content, name, values[name], problems)
    if values["labels"].strip():
        _add_labels(content, values["labels"], problems)
    if values["payload"].strip():
        _add_payload(content, values["payload"], problems)
    if values["url"].strip():
        content["webhook"] = _webhook(values, problems)
    return content, problems


def _complete(text: str) -> str:
    """Add seconds to a local time without them, as browsers give it."""
    return f"{text}:00" if _LOCAL.fullmatch(text) else text


def _seconds(text: str, problems: list[str]) -> int | None:
    found = _EVERY.fullmatch(text)
    if found is None:
        problems.append("every_seconds: write a number of seconds, or such as 15m, 6h, 2d")
        return None
    return int(found[1]) * _UNIT_SECONDS[found[2] or "s"]


def _add_number(content: dict[str, Any], name: str, text: str, problems: list[str]) -> None:
    text = text.strip()
    if not text:
        return
    if not (text.isascii() and text.isdigit()):
        problems.append(f"{name}: is not a whole number")
        return
    if len(text) > MAX_DIGITS:
        problems.append(f"{name}: has more than {MAX_DIGITS} digits")
        return
    content[name] = int(text)


def _add_labels(content: dict[str, Any], text: str, problems: list[str]) -> None:
    try:
        content["labels"] = parse_labels([line.strip() for line in text.splitlines() if line.strip()])
    except ValueError as error:
        problems.append(f"labels: {error}")


def _add_payload(content: dict[str, Any], text: str, problems: list[str]) -> None:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        problems.append(f"payload: is not JSON: {error}")
    else:
        content["payload"] = orjson.Fragment(text.strip())  # byte for byte as it was typed


def _webhook(values: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    webhook: dict[str, Any] = {"url": values["url"].strip()}
    headers = {}
    for line in values["headers"].splitlines():
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon:
            problems.append("webhook.headers: write one `Name: value` on each line")
        headers[name.strip()] = value.strip()
    if headers:
        webhook["headers"] = headers
    if values["secret"].strip():
        webhook["secret"] = values["secret"].strip()
    _add_number(webhook, "max_retries", values["max_retries"], problems)
    if timeout := values["timeout_seconds"].strip():
        try:
            webhook["timeout_seconds"] = float(timeout)
        except ValueError:
            problems.append("webhook.timeout_seconds: is not a number")
    return webhook


async def _preview(visit: Visit, content: Mapping[str, Any], problems: list[str]) -> Preview:
    if not content["id"] and not any(content.get(kind) for kind in RULE_KINDS):
        return Preview("Fill in the form to see what would come of it.", "info")
    checked = read(
        Command(REQUEST_TYPE, {**content, "id": content["id"] or "id"}), visit.console.commands.max_payload_bytes
    )
    if problems or isinstance(checked, Refused):
        errors = (*problems, *(checked.errors if isinstance(checked, Refused) and not problems else ()))
        return Preview("It would be rejected:", "bad", errors)
    if not isinstance(checked, Schedule):
        raise TypeError(f"a request was read as {type(checked).__name__}")
    known = await read_known(visit, content["id"]) if content["id"] else None
    says, tone = _foretell(content, known)
    if lost := left_out(content, known):
        says, tone = f"{says} It leaves out what the schedule had: {', '.join(lost)}.", "warn"
    return Preview(says, tone, (), tuple(occurrences_of(checked)), rule_in_words(checked.rule))


def _foretell(content: Mapping[str, Any], known: Job | None) -> tuple[str, str]:
    if not content["id"]:
        return "It needs an id.", "info"
    outcome = foretell(content.get("revision"), known)
    if known is None:
        return "It would be accepted.", "good"
    if outcome is Outcome.DUPLICATE:
        return (
            f"It would change nothing: the id is in use with revision {known.revision}. Leave the revision empty, or "
            "write a higher one.",
            "warn",
        )
    if outcome is Outcome.RESCHEDULED:
        return f"It would replace the schedule of this id, which is {known.status} now.", "warn"
    return f"It would be accepted: the id has ended ({known.status}) and lives again.", "good"


async def _has_owner(visit: Visit, job_id: str) -> bool:
    """Tell whether the command has to name the console's AMQP user: a new job gets no owner, and any application may
    then command it.
    """
    known = await read_known(visit, job_id)
    return known is not None and known.owner is not None
