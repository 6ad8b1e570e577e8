"""What is known about an id when the question is asked. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from shared.contract.history import What
from shared.contract.job_status import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The row of `jobs`, as far as an explanation needs it."""

    status: JobStatus
    topic: str
    revision: int
    life: int
    sequence: int
    refusals: int
    misfire: str
    next_run_at: datetime | None
    retry_at: datetime | None
    last_due_at: datetime | None
    finished_at: datetime | None
    timezone: str | None  # of the rule; None: a one-shot
    webhook_url: str | None
    owner: str | None

    @property
    def is_rule(self) -> bool:
        return self.timezone is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of `history`. `what` is a What; in a row that a newer release wrote, perhaps another word."""

    at: datetime
    what: str
    life: int | None = None
    revision: int | None = None
    sequence: int | None = None
    due_at: datetime | None = None
    by_user: str | None = None
    app_id: str | None = None
    operator: str | None = None
    note: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def errors(self) -> list[str]:
        return list(self.details.get("errors", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A row of `deliveries`, with how its last attempt ended."""

    id: int
    sequence: int
    due_at: datetime
    trigger_id: str | None = None  # of an occurrence outside the rule
    status: str
    host: str
    attempts: int
    attempts_allowed: int
    next_attempt_at: datetime | None
    finished_at: datetime | None
    failure_reason: str | None
    secret: str | None
    last_status_code: int | None
    last_error: str | None
    last_answer: str | None

    @property
    def reason(self) -> str:
        """Why the last attempt failed: `http_503`, or the name of an error."""
        if self.failure_reason is not None:
            return self.failure_reason
        return f"http_{self.last_status_code}" if self.last_status_code is not None else self.last_error or "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedMessage:
    """A delayed message that waits. `exchange` and `routing_key` are as people read them."""

    id: str
    exchange: str
    routing_key: str
    due_at: datetime
    retry_at: datetime | None = None
    refusals: int = 0
    refused_because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of a service. `open_breakers` are the hosts that it does not call for so long."""

    service: str
    seen_at: datetime
    is_running: bool  # it has neither stopped nor fallen silent
    open_breakers: Mapping[str, timedelta] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A queue that is bound for the job's events, as RabbitMQ's management interface tells it."""

    queue: str
    messages: int
    max_messages: int | None

    @property
    def is_full(self) -> bool:
        return self.max_messages is not None and self.messages >= self.max_messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that `explain` judges. Entries, deliveries and processes have the newest first."""

    job_id: str
    now: datetime
    job: Job | None = None
    entries: Sequence[Entry] = ()
    deliveries: Sequence[Delivery] = ()
    processes: Sequence[Process] = ()
    delayed: Sequence[DelayedMessage] = ()  # that wait under the id, the first to be due first
    listeners: Sequence[Listener] | None = None  # None: the management interface was not asked

    def without_answers(self) -> "Facts":
        """Return the facts for a reader without the right to payloads: what receivers of webhooks said is left out."""
        return replace(
            self,
            deliveries=[
                one if one.last_status_code is None else replace(one, last_answer=None) for one in self.deliveries
            ],
        )

    def newest(self, *kinds: What) -> Entry | None:
        """Return the newest entry of one of these kinds."""
        return next((entry for entry in self.entries if entry.what in kinds), None)

    def runs(self, service: str) -> bool:
        """Tell whether a process of the service runs."""
        return any(one.service == service and one.is_running for one in self.processes)

    def last_seen(self, service: str) -> datetime | None:
        return max((one.seen_at for one in self.processes if one.service == service), default=None)

    def pause_of(self, host: str) -> timedelta | None:
        """Return for how long no call goes to the host; None if no running process has a breaker open for it."""
        pauses = [one.open_breakers[host] for one in self.processes if one.is_running and host in one.open_breakers]
        return min(pauses, default=None)
