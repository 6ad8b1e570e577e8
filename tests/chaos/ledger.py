"""What a chaos run saw from outside, recorded by processes that no fault touches: the application, its listener, the
receiver of webhooks, the run itself, and a look into the tables at the end. Plain values: `tests.chaos.invariants` says
what they should be. All instants are from one clock, which Postgres shares.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from tests.chaos.faults import Fault
from tests.chaos.script import Strike


class Kind(StrEnum):
    REQUEST = "request"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Plan:
    """When a job was asked to ring: once, by a rule of so many times, or for ever (`count` None)."""

    first: datetime
    every: timedelta = timedelta(0)
    count: int | None = 1

    def place(self, due_at: datetime) -> int | None:
        """The index of the occurrence, from 0; None if the plan has no occurrence at that instant."""
        if not self.every:
            return 0 if due_at == self.first else None
        place, rest = divmod(due_at - self.first, self.every)
        inside = place >= 0 and not rest and (self.count is None or place < self.count)
        return place if inside else None

    def at(self, place: int) -> datetime:
        return self.first + place * self.every


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the broker has confirmed to the application after `tries` publishes."""

    job: str
    kind: Kind
    confirmed_at: datetime
    revision: int = 1
    plan: Plan | None = None
    webhook: bool = False
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Reply:
    job: str
    kind: Kind
    revision: int
    outcome: str
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Heard:
    """A ScheduleDue that reached the listener, or that was kept in `scheduler.unrouted` while no queue was bound."""

    job: str
    key: str
    due_at: datetime
    fired_at: datetime  # by Postgres' clock, one for each time that it was published
    seen_at: datetime
    webhook: bool = False


@dataclass(frozen=True, slots=True)
class DelayedMessage:
    """A delayed message that the broker has confirmed to the application after `tries` publishes."""

    id: str
    due_at: datetime
    confirmed_at: datetime
    tries: int = 1


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """A delayed message that reached the application's queue."""

    id: str
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Call:
    """`effect`: the receiver saw this key for the first time and acted on it, whatever it answered."""

    job: str
    key: str
    due_at: datetime
    seen_at: datetime
    behaviour: str
    effect: bool


@dataclass(frozen=True, slots=True)
class JobRow:
    id: str
    status: str
    revision: int
    sequence: int


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    job: str
    key: str
    status: str


@dataclass(frozen=True, slots=True)
class Parked:
    job: str
    revision: int
    reason: str


@dataclass(frozen=True, slots=True)
class Struck:
    """A strike and when it was made. `note` is for the report; `missed` means that the fault did not happen."""

    strike: Strike
    began_at: datetime
    ended_at: datetime
    note: str = ""
    missed: bool = False

    @property
    def hit_at(self) -> datetime:
        """When the process was hit: for a named point at the end of the strike, otherwise at its beginning."""
        return self.ended_at if self.strike.fault is Fault.KILL_AT_POINT else self.began_at


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended although no strike was made at it."""

    name: str
    at: datetime
    exit_code: int
    last_log_line: str = ""  # the last line of its log


@dataclass(frozen=True, slots=True)
class RolledBack:
    """An asynchronous standby was promoted. It may lack what was committed between these moments; `commands` of those
    that were answered by then it does not have.
    """

    since: datetime
    until: datetime
    commands: int


@dataclass(slots=True)
class Ledger:
    in_flight: int = 0  # messages that may be on their way, in all replicas, when a fault strikes
    # A fault has effects for longer than it lasts: a lost connection is noticed after a few heartbeats.
    effects_last: timedelta = timedelta(seconds=10)
    drain_within: timedelta = timedelta(seconds=60)
    commands: list[Command] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    delayed: list[DelayedMessage] = field(default_factory=list)
    heard_delayed: list[HeardMessage] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    struck: list[Struck] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    jobs: list[JobRow] = field(default_factory=list)
    deliveries: list[DeliveryRow] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    rolled_back: list[RolledBack] = field(default_factory=list)
    written_to_old_primary: list[str] = field(default_factory=list)
    fenced: int = 0  # results that delivery dropped because their lease was over
    left_over: list[str] = field(default_factory=list)  # what had not come to its end when the time was over
    drained_at: datetime | None = None

    @property
    def last_fault_at(self) -> datetime | None:
        return max((struck.ended_at for struck in self.struck), default=None)


def now() -> datetime:
    return datetime.now(UTC)
