"""Decides by the publish results what becomes of a claim's delayed messages, and what the history tells. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
import orjson

from producer.decisions.claim import Claim
from shared.amqp.message import PublishResult, RawMessage
from shared.contract.delayed import history_id, routing_key_text
from shared.contract.history import HistoryEntry, HistoryLevel, What, is_kept
from shared.runtime.backoff import pause_after

MAX_REASON_LENGTH = 300

_REASONS = {
    PublishResult.UNROUTED: "no queue is bound for the routing key",
    PublishResult.RETURNED: "no queue is bound for the routing key",
    PublishResult.TOO_LARGE: "its properties and headers do not fit into a frame of this broker: see its frame_max",
    PublishResult.NACKED: "a queue refused it, most likely because it is full",
}


class DueMessage(msgspec.Struct, frozen=True, gc=False):
    """A claimed row. It is locked until the claim's transaction ends."""

    id: int
    message: RawMessage
    due_at: datetime
    message_id: str | None
    name: str | None
    refusals: int

    @property
    def history_id(self) -> str:
        return history_id(self.name, self.message_id, self.id)


@dataclass(frozen=True, slots=True)
class PreparedMessages:
    """A claim of delayed messages. `unusable` names target exchanges that cannot be published to, and why."""

    claim: Claim[DueMessage]
    unusable: Mapping[str, str]

    @property
    def taken(self) -> int:
        """How many rows the claim has loaded."""
        return len(self.claim.rows)

    @property
    def leaves_rows(self) -> bool:
        """True if more rows were locked than their bytes allow. They are still due, for the next claim."""
        return self.claim.found > len(self.claim.rows)


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A row whose message the broker does not take. It waits for a growing pause in the retry lane."""

    id: int
    refusals: int
    reason: str
    pause: timedelta


def attribute_close(
    rows: Sequence[DueMessage], results: Sequence[PublishResult], closed_over: str | None
) -> list[PublishResult]:
    """Return the publish results as they count for the messages, after the broker has closed the channel, or
    the connection.

    If its reason names an exchange, CLOSED counts for the messages to that exchange. Otherwise it counts for a message
    that was alone. All others are UNKNOWN: they are due again.
    """
    return [
        PublishResult.UNKNOWN
        if result is PublishResult.CLOSED and not (len(rows) == 1 or row.message.exchange == closed_over)
        else result
        for row, result in zip(rows, results, strict=True)
    ]


def refusals_of(
    rows: Sequence[DueMessage], results: Sequence[PublishResult], reasons: Mapping[str, str]
) -> list[Refusal]:
    """Return the rows that have to wait. `reasons` are those of target exchanges."""
    return [
        Refusal(
            row.id,
            row.refusals + 1,
            reason_of(row, result, reasons),
            pause_after(row.refusals + 1),
        )
        for row, result in zip(rows, results, strict=True)
        if is_refused(result)
    ]


def is_refused(result: PublishResult) -> bool:
    """Return whether the broker did not take the message, for certain."""
    return result not in {PublishResult.CONFIRMED, PublishResult.UNKNOWN}


def reason_of(row: DueMessage, result: PublishResult, reasons: Mapping[str, str]) -> str:
    """Return why the broker does not take the message, for an operator."""
    return (_REASONS.get(result) or reasons.get(row.message.exchange) or str(result))[:MAX_REASON_LENGTH]


def tell_messages(
    rows: Sequence[DueMessage],
    results: Sequence[PublishResult],
    reasons: Mapping[str, str],
    published_at: datetime,
    level: HistoryLevel,
) -> Iterator[HistoryEntry]:
    """Tell of the messages that were published, if the level keeps that, and of the 1st, 2nd, 4th, 8th … refusal of a
    message.
    """
    tells_published = is_kept(What.FIRED, level)
    for row, result in zip(rows, results, strict=True):
        if result is PublishResult.CONFIRMED:
            if tells_published:
                yield _entry(row, What.FIRED, published_at, {})
        elif is_refused(result) and (row.refusals + 1) & row.refusals == 0:
            details = {"reason": reason_of(row, result, reasons), "refusals": row.refusals + 1}
            yield _entry(row, What.REFUSED, None, details)


def _entry(row: DueMessage, what: What, at: datetime | None, details: Mapping[str, object]) -> HistoryEntry:
    told = {
        "delayed": row.id,
        "exchange": row.message.exchange,
        "routing_key": routing_key_text(row.message.routing_key),
        **details,
    }
    return HistoryEntry(row.history_id, what, at=at, due_at=row.due_at, details=orjson.dumps(told).decode())
