"""The ledger by job: everything that was seen of one job, and what follows for its occurrences. Pure."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.chaos.ledger import Call, Command, DeliveryRow, Heard, JobRow, Kind, Ledger, Parked, Plan, Reply

# An event may be heard, or a webhook be called, before the commit that is lost.
BEFORE_LOSS = timedelta(seconds=2)


@dataclass(slots=True)
class History:
    job: str
    commands: list[Command] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    deliveries: list[DeliveryRow] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    row: JobRow | None = None
    rolled_back: bool = False  # something of it happened while commits were lost

    @property
    def plans(self) -> dict[int, Plan]:
        """What the application asked for, by revision."""
        return {command.revision: command.plan for command in self.commands if command.plan is not None}

    @property
    def is_cancelled(self) -> bool:
        """Tell whether the application has cancelled the job and the broker has confirmed the command."""
        return any(command.kind is Kind.CANCEL for command in self.commands)

    @property
    def seen(self) -> list[Heard | Call]:
        return [*self.heard, *self.calls]

    @property
    def rung(self) -> set[datetime]:
        """Occurrences that were published: the listener got the event, or the receiver was called for it."""
        return {seen.due_at for seen in self.seen}

    @property
    def with_webhook(self) -> set[datetime]:
        """Published occurrences whose webhook must have an effect."""
        return {seen.due_at for seen in self.seen if isinstance(seen, Call) or seen.webhook}

    def missing(self) -> list[datetime]:
        """Occurrences that must have been published, and that neither the listener nor the receiver got.

        A job that is done owes all occurrences of its last revision. A cancelled job owes as many as the producer has
        counted, from the first on: later ones were not due, or still waiting.
        """
        if self.row is None or (plan := self.plans.get(self.row.revision)) is None:
            return []
        owed = plan.count if self.row.status == "done" else None
        if owed is None:
            owed = self.row.sequence if len(self.plans) == 1 else 0
        return [due_at for due_at in map(plan.at, range(owed)) if due_at not in self.rung]


def by_job(ledger: Ledger) -> dict[str, History]:
    histories: dict[str, History] = {}

    def of(job: str) -> History:
        return histories.setdefault(job, History(job))

    for command in ledger.commands:
        of(command.job).commands.append(command)
    for reply in ledger.replies:
        of(reply.job).replies.append(reply)
    for heard in ledger.heard:
        of(heard.job).heard.append(heard)
    for call in ledger.calls:
        of(call.job).calls.append(call)
    for delivery in ledger.deliveries:
        of(delivery.job).deliveries.append(delivery)
    for parked in ledger.parked:
        of(parked.job).parked.append(parked)
    for row in ledger.jobs:
        of(row.id).row = row
    for history in histories.values():
        moments = [*(r.seen_at for r in history.replies), *(seen.seen_at for seen in history.seen)]
        history.rolled_back = any(
            lost.since - BEFORE_LOSS <= moment <= lost.until for lost in ledger.rolled_back for moment in moments
        )
    return histories
