"""Carries bulks on, step by step. A step is one short transaction: it locks some of the jobs that match, does with each
what its sender could have asked for by a single command, tells the history, and moves the place of the bulk. A consumer
that dies in a step has done nothing of it; any consumer does it then. What is due goes first: a step waits for no job
that a producer is firing while it has others locked, and a rest follows each step.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from consumer import change_jobs
from consumer.commands.bulk import RunningBulk, commands_for, tell_as_part, tell_finished, would_change
from consumer.commands.merge import Answer
from consumer.commands.parse import Cancel, Trigger
from consumer.metrics import Metrics
from consumer.replies import bulk_as_told
from consumer.store.bulk_walk import Walked, lock_free, walk
from consumer.store.bulks import claim_bulk, store_answered, store_step
from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.contract.fields import AS_INSTANTS
from shared.contract.history import HistoryEntry, HistoryLevel
from shared.contract.messages import REPLY_TYPE, BulkAction, Outcome
from shared.postgres.errors import RETRYABLE_ERRORS, ROW_ERRORS, describe
from shared.postgres.history import add_entries
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool
from shared.runtime.fault_points import Point, reached
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, mark_turn, waiting_outside
from shared.runtime.wakeup import Wakeup

JOBS_A_STEP = 500
# A bulk that another consumer has stored, or left, is found this soon.
POLL_SECONDS = 1.0
# After a step the loop rests for as long as the step took, but no longer than this.
MAX_REST_SECONDS = 0.5
RETRY_SECONDS = 1.0


class HeldByAnother(Exception):
    """Another transaction holds the first job of a step."""


@dataclass(slots=True)
class BulkWork:
    """Does the steps of bulks, one after the other."""

    pool: Pool
    publisher: Publisher
    metrics: Metrics
    publish_timeout: float
    history: HistoryLevel
    stored: Wakeup  # set when this process has stored a bulk
    jobs_a_step: int = JOBS_A_STEP

    async def work_until_stopped(self, stop: Stop) -> None:
        while not stop.requested:
            mark_turn()
            self.stored.clear()
            began = time.monotonic()
            try:
                has_worked = await self.step_once()
            except RETRYABLE_ERRORS as error:
                get_log().warning("bulks_wait", error=describe(error))
                await stop.sleep(RETRY_SECONDS)
                continue
            if has_worked:
                await stop.sleep(min(time.monotonic() - began, MAX_REST_SECONDS))
            else:
                with waiting_outside():
                    await first_of(self.stored.wait(POLL_SECONDS), stop.wait())

    async def step_once(self) -> bool:
        """Do one step of one bulk, or send one answer; return False if there was none. Of a job that another
        transaction holds, and of one that Postgres refuses to change, a step is made alone.
        """
        try:
            return await self._step(self.jobs_a_step)
        except HeldByAnother:
            return await self._step(1, alone=True)
        except ROW_ERRORS as error:
            get_log().warning("bulk_split", error=describe(error))
            return await self._step(1, alone=True)

    async def _step(self, limit: int, *, alone: bool = False) -> bool:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
            bulk = await claim_bulk(connection)
            if bulk is None:
                return False
            if bulk.stored.finished_at is not None:
                await self._answer(bulk)
                await store_answered(connection, bulk.stored.id)
                return True
            part = await walk(connection, bulk, limit)
            if not (alone or bulk.stored.dry_run):
                part = _until_held(part, await lock_free(connection, [job.id for job in part.jobs]))
            changed = await (self._change_alone if alone else self._change)(connection, bulk, part)
            matched = len(part.jobs)
            await store_step(connection, bulk.stored.id, part, changed)
            if part.is_last and not bulk.stored.dry_run:
                whole = tell_finished(bulk, bulk.stored.matched + matched, bulk.stored.changed + changed)
                await add_entries(connection, [whole], self.history)
            reached(Point.CONSUMER_APPLIED)
        self._observe(bulk, changed, is_last=part.is_last)
        return True

    async def _change_alone(self, connection: Connection, bulk: RunningBulk, part: Walked) -> int:
        """Change the one job of the part, or pass over it if Postgres refuses that. The bulk stays locked meanwhile: a
        job of another bulk is not passed over in its place.
        """
        try:
            async with connection.transaction():
                return await self._change(connection, bulk, part)
        except ROW_ERRORS as error:
            get_log().error("bulk_passes_over_a_job", error=describe(error))
            return 0

    async def _change(self, connection: Connection, bulk: RunningBulk, part: Walked) -> int:
        if bulk.stored.dry_run:
            return sum(would_change(bulk.stored.action, job.status) for job in part.jobs)
        answers, entries = await change(connection, bulk, [job.id for job in part.jobs])
        await add_entries(connection, tell_as_part(entries, bulk.stored.id), self.history)
        return sum(answer.changed for answer in answers)

    async def _answer(self, bulk: RunningBulk) -> None:
        """Publish the verdict, without a retry: a reply that the broker does not take is counted and dropped."""
        reply: dict[str, Any] = {
            "id": bulk.stored.id,
            "outcome": Outcome.FINISHED,
            "next_run_at": None,
            "upcoming": [],
            "errors": [],
            "bulk": bulk_as_told(bulk.stored),
        }
        message = OutgoingMessage(
            exchange="",
            routing_key=bulk.reply_to or "",
            body=orjson.dumps(reply, option=AS_INSTANTS),
            type=REPLY_TYPE,
            correlation_id=bulk.correlation_id,
            mandatory=False,
        )
        [result] = await self.publisher.publish([message], self.publish_timeout)
        if result is not PublishResult.CONFIRMED:
            self.metrics.replies_lost.inc()
            get_log().warning("replies_not_confirmed", replies=1)

    def _observe(self, bulk: RunningBulk, changed: int, *, is_last: bool) -> None:
        if bulk.stored.dry_run:
            return
        self.metrics.bulk_changed.inc(changed)
        if bulk.stored.action is BulkAction.CANCEL:
            self.metrics.cancelled.inc(changed)
        if is_last:
            self.metrics.bulks_finished.inc()


async def change(
    connection: Connection, bulk: RunningBulk, ids: Sequence[str]
) -> tuple[list[Answer], list[HistoryEntry]]:
    """After the commit: the jobs are changed as by single commands of the bulk's sender."""
    if not ids:
        return [], []
    commands = commands_for(bulk, ids)
    match commands[0]:
        case Cancel():
            return await change_jobs.cancel(connection, commands, bulk.operators)
        case Trigger():
            return await change_jobs.trigger(connection, commands, bulk.operators)
        case _:
            return await change_jobs.pause_or_resume(connection, commands, bulk.operators)


def _until_held(part: Walked, free: set[str]) -> Walked:
    """Return the part up to the first job that another transaction holds. To wait for that one while others are locked
    would hold up what is due among them.
    """
    for number, job in enumerate(part.jobs):
        if job.id not in free:
            if number == 0:
                raise HeldByAnother
            return Walked(part.jobs[:number], part.places[:number], part.places[number - 1], is_last=False)
    return part
