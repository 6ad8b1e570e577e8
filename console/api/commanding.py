"""The operations that act. Each body is a message of AMQP, goes out as that command, and is answered with the verdict
of the consumer: so owners, revisions and history hold as they do for applications.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
from pydantic import BaseModel

from console.acting import send
from console.api.models import BulkState, Occurrence, Preview
from console.api.operation import Call, Handle, Operation, Reply
from console.commands import Answer, Command, read
from console.errors import ApiFailure
from console.foretelling import foretell, next_revision, occurrences_of, read_known, rule_in_words
from consumer.commands.parse import Refused
from consumer.commands.schedule import Schedule
from shared.contract.messages import (
    BULK_TYPE,
    CANCEL_TYPE,
    PAUSE_TYPE,
    REQUEST_TYPE,
    RESUME_TYPE,
    TRIGGER_TYPE,
    Outcome,
    ScheduleBulk,
    ScheduleCancel,
    SchedulePause,
    ScheduleReply,
    ScheduleRequest,
    ScheduleResume,
    ScheduleTrigger,
)
from shared.reading.bulks import read_bulk

NO_VERDICT = "no verdict came in time; it may still be done: look at the schedule in a moment"


@dataclass(frozen=True, slots=True)
class CommandBody:
    """A body as a command's content: the id as text, all else as the JSON text that was sent."""

    id: str | None
    content: dict[str, Any]

    @classmethod
    def of(cls, content: Mapping[str, msgspec.Raw]) -> "CommandBody":
        fields: dict[str, Any] = {name: orjson.Fragment(bytes(value)) for name, value in content.items()}
        try:
            job_id = msgspec.json.decode(content["id"], type=str) if "id" in content else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return cls(None, fields)
        return cls(job_id, fields if job_id is None else {**fields, "id": job_id})


async def schedule(call: Call) -> Reply:
    """Send a request. Without a revision it replaces the schedule of its id, or uses an ended id again."""
    request = CommandBody.of(call.content)
    known = await _known(call, request)
    if "revision" not in request.content:
        request.content["revision"] = next_revision(known)
    # A new job gets no owner: any application may then command it.
    owns = known is not None and known.owner is not None
    [answer] = await send(call.visit, [Command(REQUEST_TYPE, request.content, owns=owns)])
    return _reply(answer)


async def preview(call: Call) -> Reply:
    request = CommandBody.of(call.content)
    checked = read(Command(REQUEST_TYPE, request.content), call.visit.console.commands.max_payload_bytes)
    if isinstance(checked, Refused):
        return Reply(Preview(outcome=Outcome.REJECTED, errors=list(checked.errors), rule="", upcoming=[]))
    if not isinstance(checked, Schedule):
        raise TypeError(f"a request was read as {type(checked).__name__}")
    revision = checked.revision if "revision" in request.content else None
    return Reply(
        Preview(
            outcome=foretell(revision, await _known(call, request)),
            errors=[],
            rule=rule_in_words(checked.rule),
            upcoming=[Occurrence.model_validate(one) for one in occurrences_of(checked)],
        )
    )


async def bulk(call: Call) -> Reply:
    """Wait for the end for as long as a page waits for a verdict; then say how far it is."""
    request = CommandBody.of(call.content)
    [answer] = await send(call.visit, [Command(BULK_TYPE, request.content)])
    if answer.outcome is not None:
        return _reply(answer)
    async with call.visit.console.reading() as connection:
        found = await read_bulk(connection, request.id or "")
    if found is None:
        raise ApiFailure(504, NO_VERDICT)
    return Reply(BulkState.model_validate(found), 202)


def _command(message_type: str) -> Handle:
    async def handle(call: Call) -> Reply:
        [answer] = await send(call.visit, [Command(message_type, CommandBody.of(call.content).content)])
        return _reply(answer)

    return handle


def _reply(answer: Answer) -> Reply:
    if answer.outcome is None:
        raise ApiFailure(504, NO_VERDICT)
    statuses = {Outcome.REJECTED: 422, Outcome.UNKNOWN: 404}
    model = answer.reply or ScheduleReply(id=answer.id or None, outcome=answer.outcome, errors=list(answer.errors))
    return Reply(model, statuses.get(answer.outcome, 200))


async def _known(call: Call, request: CommandBody) -> Any:  # noqa: ANN401 - a Job or None
    if request.id is None or "\0" in request.id:
        return None
    return await read_known(call.visit, request.id)


def _acting(path: str, summary: str, body: type[BaseModel], handle: Handle, *, unknown: bool = False) -> Operation:
    answers: dict[int, type[BaseModel]] = {200: ScheduleReply, 422: ScheduleReply}
    if unknown:
        answers[404] = ScheduleReply
    return Operation(
        method="POST",
        path=path,
        summary=summary,
        handle=handle,
        answers=answers,
        body=body,
        acts=True,
        failures=(413, 415, 504),
    )


ACTING_OPERATIONS = (
    _acting("/schedules", "Schedule: a new id, a new revision, or an ended id again", ScheduleRequest, schedule),
    Operation(
        method="POST",
        path="/preview",
        summary="Say what would become of a ScheduleRequest, and send nothing",
        handle=preview,
        answers={200: Preview},
        body=ScheduleRequest,
        failures=(413, 415),
    ),
    _acting("/cancel", "Cancel a schedule", ScheduleCancel, _command(CANCEL_TYPE), unknown=True),
    _acting("/pause", "Pause a schedule", SchedulePause, _command(PAUSE_TYPE)),
    _acting("/resume", "Resume a schedule", ScheduleResume, _command(RESUME_TYPE)),
    _acting("/trigger", "Ring once, now, outside the rule", ScheduleTrigger, _command(TRIGGER_TYPE)),
    Operation(
        method="POST",
        path="/bulk",
        summary="Act on all schedules that match",
        handle=bulk,
        answers={200: ScheduleReply, 202: BulkState, 422: ScheduleReply},
        body=ScheduleBulk,
        acts=True,
        failures=(413, 415, 504),
    ),
)
