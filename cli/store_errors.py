"""What the errors of Postgres and RabbitMQ mean to an operator: the store cannot be reached (exit status 3), or it
answers and refuses (exit status 1).
"""

from urllib.parse import unquote, urlsplit

import asyncpg
from aiormq.exceptions import (
    ChannelAccessRefused,
    ChannelNotFoundEntity,
    InvalidFrameError,
    ProbableAuthenticationError,
)

from cli.errors import Failure, Unreachable
from shared.postgres.errors import describe

# Errors with which Postgres says that it goes, comes, or has no room: a later try may succeed.
_POSTGRES_IS_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
)
DatabaseError = OSError | TimeoutError | asyncpg.PostgresError | asyncpg.InterfaceError

# What a command needs that only reads.
TO_READ = "to read Duebell's tables, as duebell_reader may"
TO_LOOK = "to look at Duebell's queues, as duebell_reader may"


def database_failure(error: DatabaseError, url: str, needs: str | None = None) -> Failure:
    """Return what the error means. `needs` is what the command needs beyond reading."""
    if isinstance(error, asyncpg.PostgresError) and not isinstance(error, _POSTGRES_IS_AWAY):
        return Failure(_refusal_of_postgres(error, url, needs or TO_READ))
    if isinstance(error, TimeoutError):
        return Unreachable("the database at DATABASE_URL does not answer")
    return Unreachable(f"cannot reach the database at DATABASE_URL: {describe(error)}")


def _refusal_of_postgres(error: asyncpg.PostgresError, url: str, needs: str) -> str:
    match error:
        case asyncpg.InvalidAuthorizationSpecificationError() | asyncpg.InvalidCatalogNameError():
            return f"the database at DATABASE_URL refuses the connection: {_text(error)}"
        case asyncpg.InsufficientPrivilegeError() | asyncpg.ReadOnlySQLTransactionError():
            return _missing_right("DATABASE_URL", url, needs, _text(error))
        case asyncpg.UndefinedTableError() | asyncpg.UndefinedColumnError():
            return f"{_text(error)}: the schema is missing or old. Run python -m shared.migrate"
        case _:
            return f"the database says: {describe(error)}"


def _missing_right(variable: str, url: str, needs: str, text: str) -> str:
    return f"the user {_user(url)!r} of {variable} lacks a right that this command needs: {needs} ({text})"


def _user(url: str) -> str:
    return unquote(urlsplit(url).username or "guest")


def broker_failure(error: BaseException, url: str, needs: str | None = None) -> Failure:
    """Return what the error means. `needs` is what the command needs beyond the numbers of queues."""
    user = _user(url)
    text = _text(error)
    match error:
        case ProbableAuthenticationError():
            return Failure(f"the broker at AMQP_URL refuses the user {user!r}, or its password")
        # All that aiormq says of the broker's reason: it closed the connection instead of opening the virtual host.
        case InvalidFrameError() if "Connection.OpenOk" in text and "Connection.Close " in text:
            host = unquote(urlsplit(url).path[1:]) or "/"
            return Failure(f"the broker at AMQP_URL refuses the virtual host {host!r} to the user {user!r}: it does "
                           "not exist, or the user has no right to it")  # fmt: skip
        case ChannelAccessRefused():
            return Failure(_missing_right("AMQP_URL", url, needs or TO_LOOK, text))
        case ChannelNotFoundEntity():
            return Failure(f"{text}: run python -m shared.topology (is AMQP_PREFIX right?)")
        case TimeoutError():
            return Unreachable("the broker at AMQP_URL does not answer")
        case _:
            return Unreachable(f"cannot reach the broker at AMQP_URL: {text or type(error).__name__}")


def _text(error: BaseException) -> str:
    """Return the error's own text in one line. What Postgres says in DETAIL is left out: it may repeat a row."""
    says = error.args[0] if isinstance(error, asyncpg.PostgresError) and error.args else error
    return " ".join(str(says).split())
