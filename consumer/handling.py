"""One batch, from messages to acknowledgement: read, fold, store in one transaction, then park what was refused, answer
whoever asked, and acknowledge all with one `multiple` ack. Nothing is acknowledged before its commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from consumer.commands import Command, RawCommand, Refused, read_command
from consumer.folding import Answer, StoredJob, answer_all, fold
from consumer.metrics import Metrics
from consumer.reply_addresses import can_be_answered
from consumer.schedules import upcoming
from consumer.store import apply_changes, database_now
from shared.batches import together_or_one_by_one
from shared.breath import Breath
from shared.database import Pool
from shared.fault_points import Point, reached
from shared.inbox import Inbox, Received
from shared.instants import format_instant
from shared.logs import get_log
from shared.messages import REPLY_TYPE, Outcome
from shared.names import Names
from shared.outgoing import Outgoing, Verdict
from shared.parking import park, parked_copy
from shared.publishing import Publisher
from shared.tracing import read_traceparent, trace_headers

ACQUIRE_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class BatchHandler:
    pool: Pool
    publisher: Publisher
    names: Names
    metrics: Metrics
    max_payload_bytes: int
    publish_timeout: float

    async def store(self, messages: Sequence[Received]) -> list[Answer]:
        """After it returns, every command that could be understood is committed. It can be repeated."""
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            now = await database_now(connection)
        commands, breath = [], Breath()
        for message in messages:
            commands.append(_read(message, now, self.max_payload_bytes))
            await breath.take()  # a hostile rule may have taken tens of milliseconds
        reached(Point.CONSUMER_RECEIVED)
        with self.metrics.store_seconds.time():
            return await together_or_one_by_one(
                commands, self._store_together, _refused_by_the_database, self.metrics.split_batches.inc
            )

    async def settle(self, messages: list[Received], answers: Sequence[Answer], inbox: Inbox) -> None:
        """After it returns, what was refused is parked, whoever asked has an answer, and all are acknowledged."""
        reached(Point.CONSUMER_COMMITTED)
        await self._park(messages, answers)
        await self._reply(messages, answers)
        reached(Point.CONSUMER_ANSWERED)
        await inbox.acknowledge(messages)
        reached(Point.CONSUMER_ACKNOWLEDGED)
        self._observe(messages, answers)

    async def _store_together(self, commands: Sequence[Command]) -> list[Answer]:
        changes = fold(commands)
        jobs: dict[str, StoredJob] = {}
        if changes:
            async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                jobs = await apply_changes(connection, list(changes.values()))
                reached(Point.CONSUMER_APPLIED)
        return answer_all(commands, changes, jobs)

    async def _park(self, messages: Sequence[Received], answers: Sequence[Answer]) -> None:
        copies = [
            parked_copy(message, exchange=self.names.parking, errors=given.errors, parked_by="consumer")
            for message, given in zip(messages, answers, strict=True)
            if given.parked
        ]
        await park(self.publisher, copies, self.publish_timeout)

    async def _reply(self, messages: Sequence[Received], answers: Sequence[Answer]) -> None:
        """At most once, and nobody waits for it: a reply queue that is gone is its owner's business."""
        replies, breath = [], Breath()
        for message, given in zip(messages, answers, strict=True):
            if can_be_answered(message.reply_to):
                replies.append(_reply_to(message, given))
                await breath.take()
        verdicts = await self.publisher.publish(replies, self.publish_timeout)
        if lost := sum(verdict is not Verdict.CONFIRMED for verdict in verdicts):
            self.metrics.replies_lost.inc(lost)
            get_log().warning("replies_not_confirmed", replies=lost)

    def _observe(self, messages: Sequence[Received], answers: Sequence[Answer]) -> None:
        self.metrics.batch_size.observe(len(answers))
        for message, given in zip(messages, answers, strict=True):
            self.metrics.commands[given.outcome].inc()
            if given.changed and given.outcome is Outcome.ACCEPTED:
                self.metrics.queued.inc()
            if given.changed and given.outcome is Outcome.CANCELLED:
                self.metrics.cancelled.inc()
            if given.parked:
                self.metrics.parked(given.errors[0]).inc()
            if given.outcome is Outcome.REJECTED:
                get_log().warning(
                    "command_rejected",
                    id=given.id,
                    errors=list(given.errors),
                    parked=given.parked,
                    **trace_headers(read_traceparent(message.headers)),
                )


def _read(message: Received, now: datetime, max_payload_bytes: int) -> Command:
    try:
        return read_command(_raw(message), now, max_payload_bytes)
    except Exception as error:  # noqa: BLE001 - the boundary of one message: it must not take its batch down
        get_log().error("command_unreadable", error=type(error).__name__)
        return Refused((f"body: cannot be read: {type(error).__name__}",))


def _raw(message: Received) -> RawCommand:
    return RawCommand(
        message.body,
        message.type,
        message.routing_key,
        message.timestamp,
        message.unreadable,
        read_traceparent(message.headers),
    )


def _refused_by_the_database(command: Command, error: str) -> Answer:
    return Answer(command.id, Outcome.REJECTED, errors=(f"body: the database refused it: {error}",), parked=True)


def _reply_to(message: Received, given: Answer) -> Outgoing:
    reply = {
        "id": given.id,
        "outcome": given.outcome,
        "next_run_at": format_instant(given.next_run_at) if given.next_run_at else None,
        "upcoming": [format_instant(instant) for instant in upcoming(given.schedule)] if given.schedule else [],
        "errors": given.errors,
    }
    return Outgoing(
        exchange="",
        routing_key=message.reply_to or "",
        body=orjson.dumps(reply),
        type=REPLY_TYPE,
        correlation_id=message.correlation_id,
        mandatory=False,
    )
