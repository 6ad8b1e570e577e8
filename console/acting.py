"""What an operator can do with jobs, as commands."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from console.commands import Answer, Command
from console.errors import NotSent
from console.web.context import Visit
from shared.contract.messages import CANCEL_TYPE, PAUSE_TYPE, RESUME_TYPE, TRIGGER_TYPE, Outcome

PUBLISHED_TOGETHER = 100


def _with_note(job_id: str, note: str) -> dict[str, Any]:
    return {"id": job_id, "note": note} if note else {"id": job_id}


def _trigger(job_id: str, _: str) -> Command:
    return Command(TRIGGER_TYPE, {"id": job_id, "trigger_id": f"console-{uuid4().hex[:16]}"})


JOB_ACTIONS: Mapping[str, Callable[[str, str], Command]] = {
    "pause": lambda job_id, note: Command(PAUSE_TYPE, _with_note(job_id, note)),
    "resume": lambda job_id, note: Command(RESUME_TYPE, _with_note(job_id, note)),
    "cancel": lambda job_id, note: Command(CANCEL_TYPE, _with_note(job_id, note)),
    "trigger": _trigger,
}


async def act_on(visit: Visit, job_ids: Sequence[str], action: str, note: str) -> list[Answer]:
    """Send the action for each job in the name of the visitor. Return one verdict each. Raises NotSent."""
    make = JOB_ACTIONS[action]
    return await send(visit, [make(job_id, note.strip()) for job_id in job_ids])


async def send(visit: Visit, commands: Sequence[Command]) -> list[Answer]:
    """Send commands in the name of the visitor, and count their outcomes. Raises NotSent if none was sent."""
    verdicts: list[Answer] = []
    for first in range(0, len(commands), PUBLISHED_TOGETHER):
        part = commands[first : first + PUBLISHED_TOGETHER]
        try:
            verdicts += await visit.console.commands.send(part, visit.user.name)
        except NotSent as error:
            if not first:
                raise
            # The parts before are sent: each of these says that it is not.
            verdicts += [_not_sent(one, error) for one in part]
    for verdict in verdicts:
        visit.console.metrics.command(verdict.outcome or "unanswered").inc()
    return verdicts


def _not_sent(command: Command, error: NotSent) -> Answer:
    return Answer(str(command.content.get("id", "")), Outcome.REJECTED, errors=(f"not sent: {error}",))
