"""What the errors of Postgres mean, and how a batch is stored when Postgres refuses one of its rows."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import asyncpg

from shared.runtime.logs import get_log
from shared.runtime.loops import mark_turn

Item = TypeVar("Item")
Result = TypeVar("Result")

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


async def together_or_one_by_one(
    items: Sequence[Item],
    store: Callable[[Sequence[Item]], Awaitable[list[Result]]],
    refused: Callable[[Item, str], Result],
    on_split: Callable[[], None],
) -> list[Result]:
    """One result per item, in order. One row that Postgres refuses must not take its neighbours with it: when the batch
    fails over a row, its members are tried one by one. Everything else is raised: it is no row's fault.
    """
    try:
        return await store(items)
    except ROW_ERRORS as error:
        on_split()
        get_log().warning("batch_split", items=len(items), error=describe(error))
    results: list[Result] = []
    for item in items:
        mark_turn()
        try:
            results += await store([item])
        except ROW_ERRORS as error:
            results.append(refused(item, describe(error)))
    return results
