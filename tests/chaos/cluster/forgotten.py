"""Which commands a database has forgotten: they were answered, and the row does not show it. Pure."""

from collections.abc import Iterable

from tests.chaos.ledger import JobRow, Kind, Reply

ACCEPTED = {"accepted", "rescheduled", "duplicate"}
CANCELS = {"cancelled", "unknown"}


def forgotten_commands(replies: Iterable[Reply], rows: Iterable[JobRow]) -> list[Reply]:
    """The answers that the rows contradict."""
    by_id = {row.id: row for row in rows}
    return [reply for reply in replies if _is_forgotten(reply, by_id.get(reply.job))]


def _is_forgotten(reply: Reply, row: JobRow | None) -> bool:
    if reply.kind is Kind.CANCEL:
        return reply.outcome in CANCELS and (row is None or row.status != "cancelled")
    return reply.outcome in ACCEPTED and (row is None or row.revision < reply.revision)
