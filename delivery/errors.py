"""The exceptions that the delivery service defines.

    DeliveryError
    ├── CallPrevented            a webhook call ends before its connection is open; `Caller.call` turns it into a value
    │   ├── LookupFailed         the name has no address, or its lookup took too long (also an OSError)
    │   └── TooManyLookups       the lookup was not made: too many others hang
    └── BrokenInvariant          a bug in this service: no code handles it, and the process ends
        ├── IllegalMove          a delivery was to change to a status that its own status does not lead to
        └── NotInPlace           a row was to leave a place of the local queue in which it is not

What is expected is a value and no exception: `Unreadable` for an event, `Unanswered` for a call, `Outcome` for an
attempt. Settings, secrets and URLs that cannot be read raise ValueError, with a text for the operator or application.
Exceptions of the shared packages, `ForbiddenAddress` among them: see `shared.errors`. Errors of Postgres: see
`shared.postgres.errors`.
"""


class DeliveryError(Exception):
    """The root of all exceptions that the delivery service defines."""


class CallPrevented(DeliveryError):
    """A webhook call ends before its connection is open."""


class LookupFailed(CallPrevented, OSError):
    """The name has no address, or its lookup took too long. aiohttp takes an OSError for a failed lookup."""


class TooManyLookups(CallPrevented):
    """The lookup was not made because too many others hang: nothing is known about the name."""


class BrokenInvariant(DeliveryError):
    """The service has a bug. No code handles this exception, and the process ends."""


class IllegalMove(BrokenInvariant):
    """A delivery was to change to a status that its own status does not lead to."""


class NotInPlace(BrokenInvariant):
    """A row was to leave a place of the local queue in which it is not."""
