"""A batch, cut into steps that are stored one after the other. Pure.

What may be folded stays together; a command whose outcome depends on an earlier one for the same id, because it is of
another kind or another user's, comes in a later step. So the steps come to what the commands of each id would come to
one by one, in order of arrival. A batch of plain requests is a single step with a single part.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from consumer.commands.parse import Cancel, Command, Pause, Refused, Resume, Trigger
from consumer.commands.schedule import Schedule

Item = TypeVar("Item")


@dataclass(slots=True)
class Part(Generic[Item]):
    """Commands for one kind of statement, and where they stand in the batch."""

    positions: list[int] = field(default_factory=list)
    commands: list[Item] = field(default_factory=list)

    def add(self, position: int, command: Item) -> None:
        self.positions.append(position)
        self.commands.append(command)


@dataclass(slots=True)
class Step:
    """For every id either scheduling, or steering and triggering, and of one user. A trigger and a pause do not mind
    each other: both need a job that is open, and leave it open.

    Each part is a transaction of its own, in the order of ids: two parts in one could deadlock with another consumer.
    """

    scheduling: Part[Schedule | Cancel] = field(default_factory=Part)
    steering: Part[Pause | Resume] = field(default_factory=Part)
    triggering: Part[Trigger] = field(default_factory=Part)


def steps_of(commands: Sequence[Command]) -> list[Step]:
    """Of everything but what was refused already."""
    steps: list[Step] = []
    latest: dict[str, tuple[int, bool, str | None]] = {}
    for position, command in enumerate(commands):
        if isinstance(command, Refused):
            continue
        schedules = isinstance(command, Schedule | Cancel)
        number = 0
        if (before := latest.get(command.id)) is not None:
            number = before[0] if before[1:] == (schedules, command.user) else before[0] + 1
        latest[command.id] = number, schedules, command.user
        if number == len(steps):
            steps.append(Step())
        _put(steps[number], position, command)
    return steps


def _put(step: Step, position: int, command: Schedule | Cancel | Pause | Resume | Trigger) -> None:
    match command:
        case Schedule() | Cancel():
            step.scheduling.add(position, command)
        case Pause() | Resume():
            step.steering.add(position, command)
        case Trigger():
            step.triggering.add(position, command)
