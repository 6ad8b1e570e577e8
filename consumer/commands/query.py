"""How queries are answered. Pure."""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from consumer.commands.bulk import ANOTHER_USER
from consumer.commands.merge import Answer, FoundJob, StoredBulk, may_command
from consumer.commands.parse import Query
from shared.contract.history import HistoryEntry
from shared.contract.messages import Outcome
from shared.contract.wording import NOT_THE_OWNER

REPLY_TO_IS_REQUIRED = "reply_to: is required for the answer to a query"


def answer_queries(
    queries: Sequence[Query],
    jobs: Mapping[str, FoundJob],
    history: Mapping[str, Sequence[HistoryEntry]],
    bulks: Mapping[str, StoredBulk],
    operators: Collection[str] = (),
) -> list[Answer]:
    """Answer each query from the jobs as they stand, and from their history, newest first. None is parked: nothing is
    lost with it.
    """
    return [_answer(query, jobs.get(query.id), history.get(query.id, ()), bulks, operators) for query in queries]


def _answer(
    query: Query,
    job: FoundJob | None,
    history: Sequence[HistoryEntry],
    bulks: Mapping[str, StoredBulk],
    operators: Collection[str],
) -> Answer:
    if job is None and (bulk := bulks.get(query.id)) is not None:
        if not may_command(query.user, bulk.user, operators):
            return Answer(query.id, Outcome.REJECTED, errors=(ANOTHER_USER,))
        return Answer(query.id, Outcome.FOUND, bulk=bulk)
    if job is None:
        return Answer(query.id, Outcome.UNKNOWN, errors=("id: there is no such job",))
    if not may_command(query.user, job.owner, operators):
        return Answer(query.id, Outcome.REJECTED, errors=(NOT_THE_OWNER,))
    if job.life == 0:
        closed = f"id: there is no such job; a cancel has closed its revisions up to {job.revision}"
        return Answer(query.id, Outcome.UNKNOWN, errors=(closed,))
    found = replace(job, history=history[: query.history])
    return Answer(query.id, Outcome.FOUND, job.next_run_at, query=query, found=found)
