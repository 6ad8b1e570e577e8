"""How the commands of a batch are grouped into steps, and how requests are merged and answered. Pure.

A batch is cut into steps that are stored one after the other. A step stores its requests first, then its cancels, its
pauses and resumes, and its triggers; last it reads for its queries. A command that must come after an earlier one for
the same id, and that its step would store before it, comes in a later step; so does a command of another user. A bulk,
which may mean any job, is a step alone. So a batch has the same effect as its commands one by one, in order of arrival.
A batch of requests alone is one step with one part.

Within a step, requests are merged id by id: the highest revision wins, in whatever order they arrived. Merging also
gives the SQL one row per id.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Generic, TypeVar, assert_never

import msgspec

from consumer.commands.parse import Bulk, Cancel, Command, Pause, Query, Refused, Resume, Trigger
from consumer.commands.schedule import Schedule
from shared.contract.fields import format_instant
from shared.contract.history import HistoryEntry
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.labels import read_labels
from shared.contract.messages import BulkAction, Outcome
from shared.contract.wording import NOT_THE_OWNER
from shared.recurrence import RuleSpec

USER_IS_REQUIRED = "user_id: is required here"

Item = TypeVar("Item")


@dataclass(slots=True)
class Part(Generic[Item]):
    """The commands of a step that one transaction stores, and their positions in the batch."""

    positions: list[int] = field(default_factory=list)
    commands: list[Item] = field(default_factory=list)

    def add(self, position: int, command: Item) -> None:
        self.positions.append(position)
        self.commands.append(command)


@dataclass(slots=True)
class Step:
    """Commands that are stored together, part by part. All commands for one id that change something are of one user,
    and none has to be stored before one that is in an earlier part. Pauses and triggers of one job may have arrived in
    any order: both need an open job, and leave it open. Queries change nothing.

    Each part is a transaction of its own that locks jobs in the order of their ids. Two parts in one transaction would
    lock them in another order, and could deadlock with another consumer.
    """

    scheduling: Part[Schedule] = field(default_factory=Part)
    cancelling: Part[Cancel] = field(default_factory=Part)
    pausing: Part[Pause | Resume] = field(default_factory=Part)
    triggering: Part[Trigger] = field(default_factory=Part)
    reading: Part[Query] = field(default_factory=Part)
    bulks: Part[Bulk] = field(default_factory=Part)

    def add(self, position: int, command: Schedule | Cancel | Pause | Resume | Trigger | Query | Bulk) -> None:
        match command:
            case Schedule():
                self.scheduling.add(position, command)
            case Cancel():
                self.cancelling.add(position, command)
            case Pause() | Resume():
                self.pausing.add(position, command)
            case Trigger():
                self.triggering.add(position, command)
            case Query():
                self.reading.add(position, command)
            case Bulk():
                self.bulks.add(position, command)
            case _:
                assert_never(command)


class Content(msgspec.Struct, frozen=True):
    """What a request says, as far as a request with the same revision must say the same. The payload and the webhook
    are hashes of their texts.
    """

    topic: str
    payload: bytes | None
    webhook: bytes | None
    rule: str | None
    next_run_at: datetime | None
    labels: str | None = None  # JSON text, in the order of who wrote it


class StoredJob(msgspec.Struct, frozen=True):
    """A job as it stands after the requests of a step."""

    status: JobStatus
    revision: int  # the highest one that is stored or closed
    next_run_at: datetime | None
    applied: bool  # this step changed it
    created: bool  # this step made it, or began a new life of its id
    owner: str | None = None
    due_soon: bool = False  # the producers must be woken
    finished_at: datetime | None = None
    content: Content | None = None  # None: the request with the highest revision of the step, if `applied`
    life: int = 1
    before: Content | None = None  # of a job that this step rescheduled: what it said before


class FoundJob(msgspec.Struct, frozen=True):
    """A job as a query reads it."""

    status: JobStatus
    revision: int  # the highest one that is stored or closed
    topic: str
    sequence: int
    last_due_at: datetime | None
    next_run_at: datetime | None
    rule: str | None  # JSON text
    rule_index: int
    owner: str | None
    life: int  # 0: no request has been stored yet, a cancel came before all of them
    labels: str | None = None  # JSON text
    history: Sequence[HistoryEntry] = ()  # newest first


class StoredBulk(msgspec.Struct, frozen=True):
    """A bulk as its row says that it stands."""

    id: str
    action: BulkAction
    dry_run: bool
    labels: str | None
    topic: str | None
    id_prefix: str | None
    user: str | None
    matched: int
    changed: int
    requested_at: datetime
    finished_at: datetime | None


class Answer(msgspec.Struct, frozen=True):
    """What became of one command: the content of its reply, and whether the command is parked."""

    id: str | None
    outcome: Outcome
    next_run_at: datetime | None = None
    errors: tuple[str, ...] = ()
    changed: bool = False  # this command changed the job
    schedule: Schedule | None = None  # what was accepted
    parked: bool = False
    query: Query | None = None  # what was asked, if a job was found
    found: FoundJob | None = None
    bulk: StoredBulk | None = None
    replies: bool = True  # False: the reply comes later, when the bulk is finished


def cut_into_steps(commands: Sequence[Command]) -> list[Step]:
    """Put every command into a step, except those that were refused while they were read."""
    steps: list[Step] = []
    latest: dict[str, tuple[int, int, str | None]] = {}  # of each id: number of the step, place in it, user
    first = 0  # the step before which no further command may come: the one behind the last bulk
    for position, command in enumerate(commands):
        if isinstance(command, Refused):
            continue
        if isinstance(command, Bulk):
            first = len(steps) + 1
            steps.append(Step())
            steps[-1].add(position, command)
            continue
        place = _place_of(command)
        number = first
        if (before := latest.get(command.id)) is not None:
            fits = isinstance(command, Query) or (place >= before[1] and command.user == before[2])
            number = max(first, before[0] if fits else before[0] + 1)
        latest[command.id] = number, place, command.user
        if number == len(steps):
            steps.append(Step())
        steps[number].add(position, command)
    return steps


def _place_of(command: Command) -> int:
    """Number the parts of a step within which commands for one id keep their order, or need none."""
    match command:
        case Schedule():
            return 0
        case Cancel():
            return 1
        case Query():
            return 3
        case _:
            return 2


def merge_requests(requests: Sequence[Schedule]) -> dict[str, Schedule]:
    """Return the request that counts for each id: the first one with the highest revision. All requests for one id must
    be of one user, as they are in a step.
    """
    merged: dict[str, Schedule] = {}
    for request in requests:
        other = merged.setdefault(request.id, request)
        if request.revision > other.revision:
            merged[request.id] = request
    return merged


def answer_requests(
    requests: Sequence[Schedule],
    merged: dict[str, Schedule],
    jobs: dict[str, StoredJob],
    operators: Collection[str] = (),
) -> list[Answer]:
    """Return one answer per request, as if the one with the highest revision had come first among those for its id."""
    answers = []
    for request in requests:
        job, winner = jobs[request.id], merged[request.id]
        if not may_command(request.user, job.owner, operators):
            answers.append(refuse(request.id, NOT_THE_OWNER))
        elif job.applied and winner is request:
            outcome = Outcome.ACCEPTED if job.created else Outcome.RESCHEDULED
            answers.append(Answer(request.id, outcome, request.next_run_at, changed=True, schedule=request))
        else:
            answers.append(_answer_duplicate(request, job, content_of(winner) if job.applied else job.content))
    return answers


def may_command(user: str | None, owner: str | None, operators: Collection[str]) -> bool:
    """Tell whether the user may command a job. Every user may if the job has no owner; else only its owner and the
    operators.

    The SQL statements decide, by the same rule, under the row's lock. `may_command` explains their result in a reply.
    """
    return owner is None or user == owner or user in operators


def refuse(job_id: str | None, *errors: str, parked: bool = True) -> Answer:
    """Answer that the command is rejected, and have it parked: an operator can read it and send it again."""
    return Answer(job_id, Outcome.REJECTED, errors=errors, parked=parked)


def content_of(request: Schedule) -> Content:
    """Return what the request says, to compare it with another request."""
    return Content(
        topic=request.topic,
        payload=_hash(request.payload),
        webhook=_hash(request.webhook),
        rule=request.rule.to_json() if request.rule else None,
        next_run_at=request.next_run_at,
        labels=request.labels,
    )


def _hash(text: str | None) -> bytes | None:
    return None if text is None else sha256(text.encode()).digest()


def _answer_duplicate(request: Schedule, job: StoredJob, stored: Content | None) -> Answer:
    """Answer a request whose revision is stored or closed already, and say why if the application may not know."""
    if job.status not in OPEN:
        since = f" since {format_instant(job.finished_at)}" if job.finished_at else ""
        ended = f"id: the job is {job.status}{since}; a revision higher than {job.revision} uses the id again"
        return Answer(request.id, Outcome.DUPLICATE, errors=(ended,))
    errors: tuple[str, ...] = ()
    if request.revision == job.revision and stored is not None and (other := list(_differences(request, stored))):
        named = " and ".join(filter(None, [", ".join(other[:-1]), other[-1]]))
        errors = (f"revision: {request.revision} is in use with another {named}; a higher revision replaces it",)
    return Answer(request.id, Outcome.DUPLICATE, job.next_run_at, errors)


def _differences(request: Schedule, stored: Content) -> Iterator[str]:
    """Name what the request says otherwise than the stored one with the same revision."""
    content = content_of(request)
    if content.topic != stored.topic:
        yield "topic"
    if content.payload != stored.payload:
        yield "payload"
    if content.webhook != stored.webhook:
        yield "webhook"
    if read_labels(content.labels) != read_labels(stored.labels):
        yield "labels"
    if not _is_same_rule(request, stored.rule):
        yield "rule"
    elif request.rule is None and content.next_run_at != stored.next_run_at:
        yield "moment"


def _is_same_rule(request: Schedule, stored: str | None) -> bool:
    if request.rule is None or stored is None:
        return request.rule is None and stored is None
    rule = RuleSpec.from_json(stored)
    if request.starts_when_made:  # the same request read again starts later
        rule = replace(rule, start_at=request.rule.start_at)
    return rule == request.rule
