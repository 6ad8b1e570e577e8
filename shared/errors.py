"""All exceptions that shared/ defines, in one tree. Expected outcomes are values and not exceptions.

    Exception
    ├── CannotStart           a setting or the environment is wrong: run_service logs one line, the exit status is 1
    ├── EndedByItself         a bug: a loop ended before the stop, and its process goes down
    ├── ForbiddenAddress      the address rules forbid a webhook's host: the request is refused, or the call is not made
    ├── ParkingFailed         the broker did not confirm a parked message: nothing is acknowledged, parking is retried
    ├── Incomplete            (amqp.wire.deliveries) bytes of a frame are still to arrive: never leaves the wire package
    ├── ManagementError       (why.listeners) RabbitMQ's management interface gave no answer: an explanation says less
    ├── BudgetExceeded        (recurrence.arithmetic) a search took too many steps: never leaves the recurrence package
    ├── ConnectionError
    │   ├── UnsuitableSession behind a pooler, a session lacks what Duebell relies on: the service waits for an operator
    │   └── TopologyMissing   an exchange or a queue is missing: the service waits for an operator, as for a broker
    └── ValueError
        ├── BadRule           a rule is refused: the reply to the command names the field and the reason
        ├── Unsplittable      (amqp.content_header) bytes are not a content header: a delayed message is parked
        ├── Unusual           (amqp.wire.deliveries) the fast decoder declines a message: the slow one reads it
        └── YearOutOfRange    (contract.fields) a moment is in a year that Duebell does not know: its message is parked

Errors of Postgres and of the broker are those of asyncpg and aiormq. Three tuples sort them: `ROW_ERRORS` and
`RETRYABLE_ERRORS` in shared/postgres/errors.py, `BROKER_ERRORS` in shared/amqp/connection.py.
"""


class CannotStart(Exception):
    """The service cannot start, and only an operator can change that. The message is one line for the log."""


class EndedByItself(Exception):
    """A loop that must run until the stop returned early, or was cancelled by another part of the process: a bug."""


class ForbiddenAddress(Exception):
    """The address rules forbid the address or the name.

    It must not be an OSError: aiohttp takes an OSError for a connection that failed, and tries the next address.
    """


class ParkingFailed(Exception):
    """The broker did not confirm a parked message. Parking is retried before any original is acknowledged."""


class TopologyMissing(ConnectionError):
    """An exchange or a queue is missing, and this user may not declare it. The service waits as for a broker."""


class UnsuitableSession(ConnectionError):
    """A pooler gives sessions that lack what Duebell relies on. The message says what to set."""


class BadRule(ValueError):
    """A recurrence rule cannot be understood, or would never have an occurrence. The message is for the author of the
    rule; `field` is the field of the request that it is about.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
