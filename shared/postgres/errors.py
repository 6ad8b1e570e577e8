"""What the errors of Postgres mean: which are about one row, which can be retried, and how they read in a log line."""

import asyncpg

# What Postgres says about a row: trying again would not help, and the row must not take its neighbours with it.
ROW_ERRORS = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.PLPGSQLError,
)
# Everything else is about the installation: it passes by itself (a restart, a deadlock, a full disk), or an operator
# mends it (a password, a grant, a migration). Try the same work again.
RETRYABLE_ERRORS = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresError)


def describe(error: BaseException) -> str:
    """One line, without a stack trace, and without what repeats the row, payload and all: Postgres' DETAIL, and the
    value that asyncpg could not encode.
    """
    says = error.args[0] if isinstance(error, asyncpg.PostgresError) and error.args else error
    if isinstance(error, asyncpg.DataError) and error.__cause__ is not None:
        says = str(says).partition(":")[0]
    return " ".join(f"{type(error).__name__}: {says}".split()).rstrip(": ")
