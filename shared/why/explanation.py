"""The answer to why a job has or has not fired. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Every cause that an explanation can name. Programs may rely on these names."""

    NEVER_HEARD = "never_heard"
    FORGOTTEN = "forgotten"  # the id has ended, and retention has deleted its row
    BULK = "bulk"  # the id is not that of a job
    REJECTED = "rejected"
    NOT_THE_OWNER = "not_the_owner"
    TOO_LATE = "too_late"  # the last command came when the job had ended
    OVERTAKEN = "overtaken"  # a cancel came before its request
    CLOSED = "closed"  # a cancel came, and no request yet
    DUPLICATE = "duplicate"  # the last request changed nothing
    CANCELLED = "cancelled"
    PAUSED = "paused"
    REPLACED = "replaced"  # waits for its moment, which a later revision has set
    NOT_YET = "not_yet"
    NO_PRODUCER = "no_producer"
    LATE = "late"
    REFUSED = "refused"  # the broker does not take its event
    RULE_UNREADABLE = "rule_unreadable"
    RULE_ENDED = "rule_ended"
    MISFIRE = "misfire"  # its misfire policy has dropped the occurrence
    UNROUTED = "unrouted"  # fired, and no queue was bound for its event
    FIRED = "fired"
    NO_DELIVERY = "no_delivery"  # fired, and the delivery service has not stored the event
    WEBHOOK_WAITS = "webhook_waits"
    WEBHOOK_RETRIES = "webhook_retries"
    WEBHOOK_FAILED = "webhook_failed"
    WEBHOOK_ANSWERED = "webhook_answered"
    FORBIDDEN_ADDRESS = "forbidden_address"
    SECRET_MISSING = "secret_missing"  # noqa: S105 - the name of a cause
    BREAKER_OPEN = "breaker_open"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is the matter, and what to do about it, if anything."""

    cause: Cause
    says: str
    to_do: str = ""

    @property
    def line(self) -> str:
        return f"{self.says} {self.to_do}".rstrip()
