"""One batch, from messages to acknowledgement: read, merge and store the commands, then park the refused ones, reply,
and acknowledge all messages with one `multiple` ack. No message is acknowledged before the commit of its command.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import msgspec

from consumer import change_jobs
from consumer.commands.bulk import answer_bulk
from consumer.commands.history import tell_bulks, tell_refused, tell_requests
from consumer.commands.masstransit import refuse_reserved
from consumer.commands.merge import (
    USER_IS_REQUIRED,
    Answer,
    Part,
    answer_requests,
    cut_into_steps,
    merge_requests,
    refuse,
)
from consumer.commands.parse import (
    Bulk,
    Cancel,
    Command,
    Pause,
    Query,
    RawCommand,
    Refused,
    Resume,
    Trigger,
    read_command,
)
from consumer.commands.query import REPLY_TO_IS_REQUIRED, answer_queries
from consumer.commands.schedule import Schedule
from consumer.commands.to_messages import answer_commands
from consumer.commands.webhook import WebhookRules
from consumer.metrics import Metrics
from consumer.replies import reply_to
from consumer.store.bulks import find_bulks, store_bulk
from consumer.store.jobs import apply_requests, database_now
from consumer.store.queries import find_jobs, read_history
from consumer.to_messages import cancel_messages, find_messages, release_messages
from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage, PublishResult
from shared.amqp.parking import make_parked_copy, park
from shared.amqp.publisher import Publisher, can_be_answered
from shared.contract.fields import read_traceparent, trace_headers
from shared.contract.history import UNNAMED, HistoryLevel, Origin
from shared.contract.messages import Outcome
from shared.contract.names import OPERATOR_HEADER, Names
from shared.postgres.history import add_entries
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool, store_together_or_one_by_one
from shared.runtime.fault_points import Point, reached
from shared.runtime.logs import get_log
from shared.runtime.loops import LoopYielder
from shared.runtime.wakeup import Wakeup

AnyCommand = TypeVar("AnyCommand", bound=Command)

MAX_NAME_LENGTH = 100


@dataclass(frozen=True, slots=True)
class BatchHandler:
    """Handles the batches of the consumer's inbox. The intake loop calls `store`, then `finish`, and repeats each until
    it succeeds.
    """

    pool: Pool
    publisher: Publisher
    names: Names
    metrics: Metrics
    max_payload_bytes: int
    publish_timeout: float
    require_user_id: bool = False
    operators: tuple[str, ...] = ()
    history: HistoryLevel = HistoryLevel.ALL
    webhook_rules: WebhookRules = field(default_factory=WebhookRules)
    bulk_stored: Wakeup = field(default_factory=Wakeup)  # wakes the loop that carries bulks on

    async def store(self, messages: Sequence[IncomingMessage]) -> list[Answer]:
        """Store the commands of a batch, and return one answer per message. It can be repeated.

        After it returns, every command that was not refused is committed.
        """
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            now = await database_now(connection)
        commands, yielder = [], LoopYielder()
        for message in messages:
            commands.append(self._read(message, now))
            await yielder.give_way()  # reading a hostile rule can take tens of milliseconds
        reached(Point.CONSUMER_RECEIVED)
        refused = {position: command for position, command in enumerate(commands) if isinstance(command, Refused)}
        await self._tell_refused(list(refused.values()))
        answers = {
            position: refuse(command.id, *command.errors, parked=command.parked)
            for position, command in refused.items()
        }
        with self.metrics.store_seconds.time():
            for step in cut_into_steps(commands):
                await self._store_part(step.scheduling, self._schedule, answers)
                await self._store_part(step.cancelling, self._cancel, answers)
                await self._store_part(step.pausing, self._pause_or_resume, answers)
                await self._store_part(step.triggering, self._trigger, answers)
                await self._store_part(step.reading, self._query, answers)
                await self._store_part(step.bulks, self._bulk, answers)
        return [_answer_alone_if_typed(message, answers[position]) for position, message in enumerate(messages)]

    async def finish(self, messages: list[IncomingMessage], answers: Sequence[Answer], inbox: Inbox) -> None:
        """Park, reply and acknowledge a batch that is stored. It can be repeated.

        After it returns, refused commands are in the parking queue, replies are published to the senders that asked for
        one, and all messages are acknowledged.
        """
        reached(Point.CONSUMER_COMMITTED)
        await self._park(messages, answers)
        await self._reply(messages, answers)
        reached(Point.CONSUMER_ANSWERED)
        await inbox.acknowledge(messages)
        reached(Point.CONSUMER_ACKNOWLEDGED)
        self._observe(messages, answers)

    async def _store_part(
        self,
        part: Part[AnyCommand],
        store: Callable[[Sequence[AnyCommand]], Awaitable[list[Answer]]],
        answers: dict[int, Answer],
    ) -> None:
        if part.commands:
            stored = await store_together_or_one_by_one(
                part.commands, store, _refused_by_the_database, self.metrics.split_batches.inc
            )
            answers.update(zip(part.positions, stored, strict=True))

    async def _schedule(self, requests: Sequence[Schedule]) -> list[Answer]:
        merged = merge_requests(requests)
        async with self._transaction() as connection:
            jobs = await apply_requests(connection, list(merged.values()), self.operators)
            answers = answer_requests(requests, merged, jobs, self.operators)
            await add_entries(connection, tell_requests(requests, answers, jobs), self.history)
        return answers

    async def _cancel(self, cancels: Sequence[Cancel]) -> list[Answer]:
        async with self._transaction() as connection:
            meant = await find_messages(connection, cancels, self.operators)
            to_jobs = [cancels[position] for position in meant.of_jobs]
            of_jobs, entries = await change_jobs.cancel(connection, to_jobs, self.operators) if to_jobs else ([], [])
            await add_entries(connection, entries, self.history)
            await cancel_messages(connection, cancels, meant, self.history)
        self.metrics.delayed_cancelled.inc(len(meant.numbers))
        return answer_commands(cancels, meant, of_jobs)

    async def _pause_or_resume(self, commands: Sequence[Pause | Resume]) -> list[Answer]:
        async with self._transaction() as connection:
            answers, entries = await change_jobs.pause_or_resume(connection, commands, self.operators)
            await add_entries(connection, entries, self.history)
        return answers

    async def _bulk(self, bulks: Sequence[Bulk]) -> list[Answer]:
        async with self._transaction() as connection:
            known = [await store_bulk(connection, bulk, self.operators) for bulk in bulks]
            answers = [answer_bulk(bulk, stored, self.operators) for bulk, stored in zip(bulks, known, strict=True)]
            await add_entries(connection, tell_bulks(bulks, answers), self.history)
        self.bulk_stored.set()
        return answers

    async def _trigger(self, commands: Sequence[Trigger]) -> list[Answer]:
        async with self._transaction() as connection:
            meant = await find_messages(connection, commands, self.operators)
            to_jobs = [commands[position] for position in meant.of_jobs]
            of_jobs, entries = await change_jobs.trigger(connection, to_jobs, self.operators) if to_jobs else ([], [])
            await add_entries(connection, entries, self.history)
            await release_messages(connection, commands, meant, self.history)
        self.metrics.delayed_released.inc(len(meant.numbers))
        return answer_commands(commands, meant, of_jobs)

    async def _tell_refused(self, commands: Sequence[Refused]) -> None:
        if entries := list(tell_refused(commands)):
            async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                await add_entries(connection, entries, self.history)

    async def _query(self, queries: Sequence[Query]) -> list[Answer]:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            jobs = await find_jobs(connection, queries)
            history = await read_history(connection, queries)
            without = [query.id for query in queries if query.id not in jobs]
            bulks = await find_bulks(connection, without) if without else {}
        return answer_queries(queries, jobs, history, bulks, self.operators)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
            yield connection
            reached(Point.CONSUMER_APPLIED)

    def _read(self, message: IncomingMessage, now: datetime) -> Command:
        try:
            command = read_command(raw_command(message), now, self.max_payload_bytes, self.webhook_rules)
        except Exception as error:  # noqa: BLE001 - one unreadable message must not fail its whole batch
            get_log().error("command_unreadable", error=type(error).__name__)
            return Refused((f"body: cannot be read: {type(error).__name__}",))
        if isinstance(command, Query) and not can_be_answered(message.reply_to):
            return Refused((REPLY_TO_IS_REQUIRED,), command.id, parked=False)
        if message.exchange != self.names.masstransit and (refused := refuse_reserved(command)) is not None:
            return refused
        if self.require_user_id and message.user_id is None and not isinstance(command, Refused):
            if isinstance(command, Query):
                return Refused((USER_IS_REQUIRED,), command.id, parked=False)
            return Refused((USER_IS_REQUIRED,), command.id, origin=command.origin)
        return command

    async def _park(self, messages: Sequence[IncomingMessage], answers: Sequence[Answer]) -> None:
        copies = [
            make_parked_copy(message, exchange=self.names.parking, errors=answer.errors, parked_by="consumer")
            for message, answer in zip(messages, answers, strict=True)
            if answer.parked
        ]
        if copies:
            await park(self.publisher, copies, self.publish_timeout)

    async def _reply(self, messages: Sequence[IncomingMessage], answers: Sequence[Answer]) -> None:
        """Publish each reply, without a retry. A reply that the broker does not take, because its queue is gone, is
        counted and dropped: the commands of the batch are stored all the same.
        """
        replies, yielder = [], LoopYielder()
        for message, answer in zip(messages, answers, strict=True):
            if answer.replies and can_be_answered(message.reply_to):
                replies.append(await reply_to(message, answer, yielder))
                await yielder.give_way()
        results = await self.publisher.publish(replies, self.publish_timeout)
        if lost := sum(result is not PublishResult.CONFIRMED for result in results):
            self.metrics.replies_lost.inc(lost)
            get_log().warning("replies_not_confirmed", replies=lost)

    def _observe(self, messages: Sequence[IncomingMessage], answers: Sequence[Answer]) -> None:
        self.metrics.batch_size.observe(len(answers))
        # A counter takes a lock and a few calls, and a batch has few outcomes: one call per outcome, not per command.
        for (outcome, changed), count in Counter((answer.outcome, answer.changed) for answer in answers).items():
            self.metrics.commands[outcome].inc(count)
            if changed and outcome is Outcome.ACCEPTED:
                self.metrics.queued.inc(count)
            if changed and outcome is Outcome.CANCELLED:
                self.metrics.cancelled.inc(count)
        for message, answer in zip(messages, answers, strict=True):
            if answer.parked:
                self.metrics.parked(answer.errors[0]).inc()
            if answer.outcome is Outcome.REJECTED:
                get_log().warning(
                    "command_rejected",
                    id=answer.id,
                    errors=list(answer.errors),
                    parked=answer.parked,
                    **trace_headers(read_traceparent(message.headers)),
                )


def raw_command(message: IncomingMessage) -> RawCommand:
    """Return what `read_command` needs of the message."""
    return RawCommand(
        message.body,
        message.type,
        message.routing_key,
        message.timestamp,
        message.unreadable,
        read_traceparent(message.headers),
        message.user_id,
        _origin(message),
        message.reply_to if can_be_answered(message.reply_to) else None,
        message.correlation_id,
    )


def _origin(message: IncomingMessage) -> Origin:
    operator = message.headers.get(OPERATOR_HEADER)
    if message.app_id is None and operator is None:
        return UNNAMED
    return Origin(_readable(message.app_id), _readable(operator))


def _readable(name: object) -> str | None:
    """Return a name that a sender gave itself as it can be stored: text without NUL, of a limited length."""
    return name.replace("\0", "")[:MAX_NAME_LENGTH] if isinstance(name, str) else None


def _answer_alone_if_typed(message: IncomingMessage, answer: Answer) -> Answer:
    """Do not park a command that a person has typed, and whose reply says what is wrong: a mistake of an operator is
    not an alert for others. The history has it all the same.
    """
    if answer.parked and OPERATOR_HEADER in message.headers and can_be_answered(message.reply_to):
        return msgspec.structs.replace(answer, parked=False)
    return answer


def _refused_by_the_database(command: Command, error: str) -> Answer:
    return refuse(command.id, f"body: the database refused it: {error}", parked=not isinstance(command, Query))
