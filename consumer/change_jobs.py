"""How commands change jobs, inside a transaction of the caller: the rows are locked in the order of ids, what the
commands come to is decided, and stored. Each function returns the answers and what the history tells of them.
"""

from collections.abc import Sequence

from consumer.commands.cancel import cancel_jobs, marks_of
from consumer.commands.history import tell_cancels, tell_pauses, tell_triggers
from consumer.commands.merge import Answer
from consumer.commands.parse import Cancel, Pause, Resume, Trigger
from consumer.commands.pause_and_trigger import answer_triggers, pause_jobs
from consumer.store.jobs import lock_or_mark, store_cancels
from consumer.store.pause_and_trigger import insert_triggers, lock_jobs, store_pauses
from shared.contract.history import HistoryEntry
from shared.postgres.pool import Connection

Changes = tuple[list[Answer], list[HistoryEntry]]


async def cancel(connection: Connection, cancels: Sequence[Cancel], operators: Sequence[str]) -> Changes:
    """After the commit: the jobs are cancelled, and ids without one are marked."""
    marks = marks_of(cancels)
    jobs = await lock_or_mark(connection, marks)
    marked = {mark.id for mark in marks} - jobs.keys()
    cancelled = cancel_jobs(cancels, marked, jobs, operators)
    await store_cancels(connection, cancelled.revisions, jobs)
    closed = {mark.id: mark.revision for mark in marks} | cancelled.revisions
    return cancelled.answers, list(tell_cancels(cancels, cancelled.answers, jobs, closed))


async def pause_or_resume(
    connection: Connection, commands: Sequence[Pause | Resume], operators: Sequence[str]
) -> Changes:
    """After the commit: the jobs are paused, or not, as the last command for each says."""
    jobs = await lock_jobs(connection, {command.id for command in commands})
    paused = pause_jobs(commands, jobs, operators)
    await store_pauses(connection, paused.changes, jobs)
    return paused.answers, list(tell_pauses(commands, paused.answers, jobs))


async def trigger(connection: Connection, commands: Sequence[Trigger], operators: Sequence[str]) -> Changes:
    """After the commit: each new trigger of an open job has a row."""
    stored = await insert_triggers(connection, commands, operators)
    answers = answer_triggers(commands, stored, operators)
    return answers, list(tell_triggers(commands, answers))
