"""How cancels apply to delayed messages: to all that wait under the `message_id`, or the name, that the cancel gives as
its id. A cancel names no revision of a message: it always means what waits. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from consumer.commands.merge import Answer, may_command, refuse
from consumer.commands.parse import Cancel
from shared.contract.messages import Outcome
from shared.contract.wording import NOT_THE_OWNER


class WaitingMessage(msgspec.Struct, frozen=True, gc=False):
    """A delayed message that a cancel may mean. It is locked until the transaction ends."""

    id: int
    message_id: str | None
    name: str | None
    exchange: str
    due_at: datetime
    owner: str | None


@dataclass(frozen=True, slots=True)
class CancelledMessages:
    """What the cancels of a step come to: the messages that each of them cancels, and those that it may not cancel."""

    of_cancel: list[list[WaitingMessage]] = field(default_factory=list)
    forbidden: list[bool] = field(default_factory=list)

    @property
    def numbers(self) -> list[int]:
        """The numbers of all messages that are cancelled."""
        return [message.id for messages in self.of_cancel for message in messages]


def cancel_messages(
    cancels: Sequence[Cancel], waiting: Sequence[WaitingMessage], operators: Collection[str] = ()
) -> CancelledMessages:
    """Carry the cancels out, in their order. A message is cancelled once."""
    by_id: dict[str, list[WaitingMessage]] = {}
    for message in waiting:
        for key in {message.message_id, message.name} - {None}:
            by_id.setdefault(str(key), []).append(message)
    cancelled, gone = CancelledMessages(), set[int]()
    for cancel in cancels:
        found = [message for message in by_id.get(cancel.id, ()) if message.id not in gone]
        allowed = [message for message in found if may_command(cancel.user, message.owner, operators)]
        gone |= {message.id for message in allowed}
        cancelled.of_cancel.append(allowed)
        cancelled.forbidden.append(len(allowed) < len(found))
    return cancelled


def answer_cancels(
    cancels: Sequence[Cancel], cancelled: CancelledMessages, answers_of_jobs: Mapping[int, Answer]
) -> list[Answer]:
    """Answer each cancel. `answers_of_jobs` has the answers, by position, of those whose id a job may have as well."""
    met = {cancel.id for cancel, messages in zip(cancels, cancelled.of_cancel, strict=True) if messages}
    answers = []
    for position, cancel in enumerate(cancels):
        of_job = answers_of_jobs.get(position)
        if cancelled.of_cancel[position]:
            answers.append(Answer(cancel.id, Outcome.CANCELLED, changed=of_job is not None and of_job.changed))
        elif of_job is not None:
            answers.append(of_job)
        elif cancelled.forbidden[position]:
            answers.append(refuse(cancel.id, NOT_THE_OWNER))
        else:  # an earlier cancel of this step has cancelled what waited
            answers.append(Answer(cancel.id, Outcome.CANCELLED if cancel.id in met else Outcome.UNKNOWN))
    return answers
