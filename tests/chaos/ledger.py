"""What was seen from outside, by parties that no fault touches: the application that sent the commands, a listener, a
receiver of webhooks, the hand that struck, and, when all is over, a look into the tables. Plain values, with no opinion
on what should have been: that is the checker's. All times are those of one clock, which is also Postgres'.
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
        """Which occurrence it is, from 0; None if it is none."""
        if not self.every:
            return 0 if due_at == self.first else None
        place, rest = divmod(due_at - self.first, self.every)
        inside = place >= 0 and not rest and (self.count is None or place < self.count)
        return place if inside else None

    def at(self, place: int) -> datetime:
        return self.first + place * self.every


@dataclass(frozen=True, slots=True)
class Command:
    """Confirmed by the broker to the application, which had sent it as often as that took."""

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
    """A ScheduleDue that reached the listener, or that nobody had bound a queue for and was kept."""

    job: str
    key: str
    due_at: datetime
    fired_at: datetime  # by Postgres' clock, one for each time that it was published
    seen_at: datetime
    webhook: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`effect`: the receiver saw this key for the first time and acted on it, whatever it answered."""

    job: str
    key: str
    due_at: datetime
    seen_at: datetime
    mood: str
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
    """A strike as it went. `note` says what was peculiar about it; `missed`, that it did not happen."""

    strike: Strike
    began_at: datetime
    ended_at: datetime
    note: str = ""
    missed: bool = False

    @property
    def hit_at(self) -> datetime:
        """A trap is set when the strike begins, and springs when it ends."""
        return self.ended_at if self.strike.fault is Fault.KILL_AT_POINT else self.began_at


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended although nobody had struck it."""

    name: str
    at: datetime
    exit_code: int
    last_words: str = ""  # the last line of its log


@dataclass(slots=True)
class Ledger:
    in_flight: int = 0  # messages that may be on their way, in all replicas, when a fault strikes
    commands: list[Command] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    struck: list[Struck] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    jobs: list[JobRow] = field(default_factory=list)
    deliveries: list[DeliveryRow] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    fenced: int = 0  # results that delivery dropped because their lease was over
    left_over: list[str] = field(default_factory=list)  # what had not come to its end when the time was over
    drained_at: datetime | None = None

    @property
    def last_fault_at(self) -> datetime | None:
        return max((struck.ended_at for struck in self.struck), default=None)


def now() -> datetime:
    return datetime.now(UTC)
