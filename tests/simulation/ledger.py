"""The simulation's own account of every request, event and webhook call. It is kept apart from the services and their
tables, and compared with both after every step and at the end; a difference is a broken promise.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from delivery.model import Delivery
from shared.amqp.message import OutgoingMessage
from tests.simulation.database import SimDatabase
from tests.simulation.worker import Worker

FINAL = {"done", "cancelled", "COMPLETED", "FAILED"}


# The job, the moment, and the revision of the request that asked for it, which comes back in the payload. A later life
# of an id may be due at a moment of an earlier one: that is another occurrence.
Occurrence = tuple[str, datetime, int]


class PromiseBroken(AssertionError):
    """A history broke a promise of Duebell."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that the broker has confirmed to the application."""

    id: str
    revision: int
    moments: tuple[datetime, ...]

    @property
    def occurrences(self) -> list[Occurrence]:
        return [(self.id, at, self.revision) for at in self.moments]


@dataclass(frozen=True, slots=True)
class Lease:
    worker: Worker
    until: datetime


@dataclass(slots=True)
class Ledger:
    database: SimDatabase
    asked: list[Asked] = field(default_factory=list)
    cancels: dict[str, int] = field(default_factory=dict)  # the highest revision that was closed, by id
    replies: list[dict[str, Any]] = field(default_factory=list)
    lost_replies: set[str] = field(default_factory=set)  # ids whose reply was lost: replies are given at most once
    parked: list[OutgoingMessage] = field(default_factory=list)
    # ScheduleDue that the broker took, by key, and how many copies beyond the first the faults so far account for.
    rung: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    occurrences: dict[str, Occurrence] = field(default_factory=dict)  # of each key
    webhooks: set[str] = field(default_factory=set)  # keys that are to be delivered
    announced: set[str] = field(default_factory=set)  # keys whose delivery was said to have ended
    # What a receiver did that keeps the keys it has seen.
    effects: dict[str, Occurrence] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    # The rows as the last `look()` read them.
    jobs: dict[str, Any] = field(default_factory=dict)
    deliveries: dict[int, Any] = field(default_factory=dict)
    _leases: dict[tuple[int, int], Lease] = field(default_factory=dict)  # by delivery and version
    _unsettled: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))  # keys, by worker

    def begins(self, worker: Worker) -> None:
        self._unsettled[worker.number] = []

    def event(self, message: OutgoingMessage, worker: Worker) -> None:
        content = json.loads(message.body)
        key, job_id, due_at = content["idempotency_key"], content["id"], datetime.fromisoformat(content["due_at"])
        if message.routing_key.startswith("delivery."):
            self.announced.add(key)
            return
        self.rung[key] += 1
        occurrence = _occurrence(content)
        if self.occurrences.setdefault(key, occurrence) != occurrence:
            self.violations.append(f"{occurrence} has the key of {self.occurrences[key]}")
        if message.routing_key.startswith("due.webhook."):
            self.webhooks.add(key)
        self._unsettled[worker.number].append(key)
        if due_at > self.database.now:
            self.violations.append(f"{job_id} rang early: {due_at} at {self.database.now}")
        if worker.lost_its_locks:
            self.in_doubt(worker)  # the worker does not know yet that it lost its locks
        elif job_id in self.jobs and self.jobs[job_id]["status"] == "cancelled":
            self.violations.append(f"{job_id} rang after it was cancelled")

    def in_doubt(self, worker: Worker) -> None:
        """Allow one more copy of every event that the worker has published and not settled."""
        self.excused.update(self._unsettled[worker.number])
        self._unsettled[worker.number] = []

    def reply(self, message: OutgoingMessage) -> None:
        self.replies.append(json.loads(message.body))

    def call(self, key: str, content: dict[str, Any]) -> None:
        occurrence = _occurrence(content)
        if occurrence[1] > self.database.now:
            self.violations.append(f"{occurrence} was called early, at {self.database.now}")
        if key not in self.effects and occurrence in self.effects.values():
            self.violations.append(f"{occurrence} had two effects: it came with two keys")
        self.effects.setdefault(key, occurrence)

    def claimed(self, worker: Worker, deliveries: list[Delivery], lease_margin: float) -> None:
        for delivery in deliveries:
            for (delivery_id, _), lease in self._leases.items():
                if delivery_id != delivery.id or lease.worker is worker or lease.worker.dead:
                    continue
                if lease.until > self.database.now and self._is_open(delivery_id, lease):
                    self.violations.append(f"delivery {delivery.id} was claimed by two at once")
            until = delivery.claimed_at + timedelta(seconds=delivery.timeout_seconds + lease_margin)
            self._leases[delivery.id, delivery.version] = Lease(worker, until)

    def _is_open(self, delivery_id: int, lease: Lease) -> bool:
        """Tell whether the holder of the lease has not recorded an outcome yet."""
        row = self.deliveries.get(delivery_id)
        return row is not None and self._leases.get((delivery_id, row["version"])) is lease

    async def look(self, active: set[int]) -> None:
        """Read both tables and check them. `active`: the numbers of the workers that may have written since the last
        look.
        """
        jobs, deliveries = await self.database.read_jobs(), await self.database.read_deliveries()
        for row_id, before in self.jobs.items():
            self._compare(f"job {row_id}", before, jobs.get(row_id))
            for number in ("revision", "life"):
                if row_id in jobs and jobs[row_id][number] < before[number]:
                    self.violations.append(f"job {row_id} went back to {number} {jobs[row_id][number]}")
        for delivery_id, before in self.deliveries.items():
            self._compare(f"delivery {delivery_id}", before, deliveries.get(delivery_id))
        for delivery_id, row in deliveries.items():
            self._check_lease_holder(row, self.deliveries.get(delivery_id), active)
        self.jobs, self.deliveries = jobs, deliveries
        for key, copies in self.rung.items():
            if copies > 1 + self.excused[key]:
                self.violations.append(f"{self.occurrences[key]} rang {copies} times, {self.excused[key]} excused")
        self.judge()

    def judge(self) -> None:
        if self.violations:
            raise PromiseBroken("; ".join(self.violations))

    def _compare(self, name: str, before: Any, after: Any) -> None:
        if after is None:
            self.violations.append(f"{name} is gone")
        elif after["version"] < before["version"]:
            self.violations.append(f"{name} went back to version {after['version']}")
        elif before["status"] in FINAL and dict(after) | {"unannounced": None} != dict(before) | {"unannounced": None}:
            # A job that has ended changes by a higher revision alone: that begins a new life, or is closed.
            self._require_higher_revision(name, before, after)

    def _require_higher_revision(self, name: str, before: Any, after: Any) -> None:
        if after.get("revision", 0) <= before.get("revision", 0):
            self.violations.append(f"{name} was {before['status']}, which is final, and changed")

    def _check_lease_holder(self, row: Any, before: Any, active: set[int]) -> None:
        """Only the worker that holds a delivery's lease may write its outcome."""
        if before is None or all(row[column] == before[column] for column in ("status", "retry_count", "attempts")):
            return
        if (before["status"], row["status"], row["attempts"]) == ("PENDING", "PROCESSING", 0):
            return  # a claim
        lease = self._leases.get((row["id"], row["version"] - 1))
        if lease is None or lease.worker.number not in active:
            self.violations.append(
                f"an outcome of delivery {row['id']} was written by a worker that had lost its lease"
            )
        if row["attempts"] > row["max_retries"] + 1:
            self.violations.append(f"delivery {row['id']} was tried {row['attempts']} times")


def _occurrence(content: dict[str, Any]) -> Occurrence:
    return content["id"], datetime.fromisoformat(content["due_at"]), content["payload"]["revision"]
