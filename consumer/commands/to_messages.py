"""How cancels and triggers apply to delayed messages: to all that wait under the `message_id`, the name or the number
that the command gives as its id. They name no revision of a message: they always mean what waits. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from consumer.commands.merge import Answer, may_command, refuse
from consumer.commands.parse import Cancel, Trigger
from shared.contract.delayed import number_in, numbered_id
from shared.contract.messages import Outcome
from shared.contract.wording import NOT_THE_OWNER

NOT_THE_PAYLOAD = "payload: a delayed message is published as it was sent"
# Many messages may have one `message_id`. A command that means more of them is refused: it would take longer than a
# statement may, and hold up all other commands.
MAX_MEANT_MESSAGES = 10_000
TOO_MANY = (
    f"id: more than {MAX_MEANT_MESSAGES:,} delayed messages wait under it; "
    "`duebell delayed` cancels and releases them in portions"
)
NO_SUCH_MESSAGE = "id: no message of this number waits: it was published, cancelled or replaced"


class WaitingMessage(msgspec.Struct, frozen=True, gc=False):
    """A delayed message that a command may mean. It is locked until the transaction ends."""

    id: int
    message_id: str | None
    name: str | None
    exchange: str
    due_at: datetime
    owner: str | None

    @property
    def keys(self) -> set[str]:
        """The ids by which commands can mean this message."""
        return {key for key in (self.message_id, self.name, numbered_id(self.id)) if key is not None}


@dataclass(frozen=True, slots=True)
class MeantMessages:
    """The delayed messages that each command of a step is carried out for, and an error where it may not be. `of_jobs`
    has the positions of commands whose id may be that of a job, too.
    """

    of_command: list[list[WaitingMessage]] = field(default_factory=list)
    errors: list[str | None] = field(default_factory=list)
    of_jobs: list[int] = field(default_factory=list)

    @property
    def numbers(self) -> list[int]:
        """The numbers of all messages that a command is carried out for."""
        return [message.id for messages in self.of_command for message in messages]


def choose_messages(
    commands: Sequence[Cancel | Trigger],
    waiting: Sequence[WaitingMessage],
    ids_of_jobs: Collection[str],
    operators: Collection[str] = (),
) -> MeantMessages:
    """Carry the commands out, in their order. A message is cancelled, or released, once."""
    by_id: dict[str, list[WaitingMessage]] = {}
    for message in waiting:
        for key in message.keys:
            by_id.setdefault(key, []).append(message)
    meant, done = MeantMessages(), set[int]()
    for position, command in enumerate(commands):
        found = [message for message in by_id.get(command.id, ()) if message.id not in done]
        allowed = [message for message in found if may_command(command.user, message.owner, operators)]
        error = NOT_THE_OWNER if len(allowed) < len(found) else None
        if len(found) > MAX_MEANT_MESSAGES:
            allowed, error = [], TOO_MANY
        if found and isinstance(command, Trigger) and command.payload is not None:
            allowed, error = [], NOT_THE_PAYLOAD
        done |= {message.id for message in allowed}
        meant.of_command.append(allowed)
        meant.errors.append(error)
        # An id that messages have is one of a job only if there is such a job: a cancel leaves no mark otherwise.
        if not (command.id in by_id or number_in(command.id) is not None) or command.id in ids_of_jobs:
            meant.of_jobs.append(position)
    return meant


def answer_commands(
    commands: Sequence[Cancel | Trigger], meant: MeantMessages, answers_of_jobs: Sequence[Answer]
) -> list[Answer]:
    """Answer each command. `answers_of_jobs` has the answers of those whose positions are in `meant.of_jobs`."""
    of_jobs: Mapping[int, Answer] = dict(zip(meant.of_jobs, answers_of_jobs, strict=True))
    met = {command.id for command, messages in zip(commands, meant.of_command, strict=True) if messages}
    answers = []
    for position, command in enumerate(commands):
        of_job, error = of_jobs.get(position), meant.errors[position]
        done = Outcome.CANCELLED if isinstance(command, Cancel) else Outcome.TRIGGERED
        if meant.of_command[position]:
            answers.append(Answer(command.id, done, changed=of_job is not None and of_job.changed))
        elif of_job is not None:
            answers.append(of_job)
        elif error is not None:
            answers.append(refuse(command.id, error))
        elif command.id in met:  # an earlier command of this step was carried out for what waited
            answers.append(Answer(command.id, done))
        elif isinstance(command, Cancel):
            answers.append(Answer(command.id, Outcome.UNKNOWN, errors=(NO_SUCH_MESSAGE,)))
        else:
            answers.append(refuse(command.id, NO_SUCH_MESSAGE, parked=False))
    return answers
