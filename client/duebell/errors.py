"""What can go wrong, as the caller sees it.

DuebellError
├── InvalidURL       the broker's URL cannot be read; nothing was tried
├── InvalidCommand   the command is wrong as it stands; nothing was sent
├── Rejected         Duebell has read the command and says no; `errors` has the reasons
├── Conflict         a duplicate that differs: its revision is in use with other content, or the id has ended or moved
│                    on with a higher one; nothing changed, and `errors` has the reasons
├── Unroutable       the broker has no queue for the command: is Duebell set up there, under this prefix?
├── NotAllowed       the broker refuses the user, its password or the virtual host of the URL, or refuses to this user
│                    the command or the queue to listen on
├── Unconfirmed      no confirmation in time: the command may have arrived or not. `send` of the same object is safe
├── NoReply          the command is in Duebell's inbox, confirmed, but no verdict came in time. `send` of the same
│                    object is safe
├── Unreachable      no connection in time; or, at once, no host has the name in the URL, or no TLS that can be trusted
└── SomeFailed       of schedule_many: `failures` has the error for each id, `sent` counts the others
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duebell.messages import ScheduleReply


class DuebellError(Exception):
    pass


class InvalidURL(DuebellError, ValueError):
    pass


class _WithReasons(DuebellError):
    def __init__(self, job_id: str | None, errors: Sequence[str]) -> None:
        super().__init__(f"{job_id}: {'; '.join(errors)}")
        self.id = job_id
        self.errors = tuple(errors)


class InvalidCommand(_WithReasons, ValueError):
    pass


class _Refused(_WithReasons):
    def __init__(self, reply: "ScheduleReply") -> None:
        super().__init__(reply.id, reply.errors)
        self.reply = reply


class Rejected(_Refused):
    pass


class Conflict(_Refused):
    pass


class Unroutable(DuebellError):
    pass


class NotAllowed(DuebellError):
    pass


class Unconfirmed(DuebellError, TimeoutError):
    pass


class NoReply(DuebellError, TimeoutError):
    pass


class Unreachable(DuebellError, ConnectionError):
    pass


class SomeFailed(DuebellError):
    def __init__(self, sent: int, failures: Mapping[str, DuebellError], *, gave_up: bool) -> None:
        job_id, error = next(iter(failures.items()))
        first = str(error) if str(error).startswith(f"{job_id}: ") else f"{job_id}: {error}"
        rest = "; took no more after so many" if gave_up else ""
        super().__init__(f"{len(failures)} failed, {sent} did not; the first: {first}{rest}")
        self.sent = sent
        self.failures = dict(failures)
        self.gave_up = gave_up
