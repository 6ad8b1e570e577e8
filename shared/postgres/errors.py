"""What the errors of Postgres mean: which are about one row, which can be retried, and how they read in a log line."""

import asyncpg

# The row itself is refused. A retry would not help, and the other rows of the batch must be stored all the same.
ROW_ERRORS = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.PLPGSQLError,
)
# All other errors are about the installation: they pass (a restart, a deadlock, a full disk), or an operator corrects
# the cause (a password, a grant, a migration). The caller retries the same work.
RETRYABLE_ERRORS = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresError)


def describe(error: BaseException) -> str:
    """Return the error as one line for the log. The line leaves out what would repeat the row and its payload: the
    DETAIL of Postgres, and the value that asyncpg could not encode.
    """
    says = error.args[0] if isinstance(error, asyncpg.PostgresError) and error.args else error
    if isinstance(error, asyncpg.DataError) and error.__cause__ is not None:
        says = str(says).partition(":")[0]
    return " ".join(f"{type(error).__name__}: {says}".split()).rstrip(": ")
