"""What is said about a statement that failed never repeats the values it was about."""

from typing import Any

import asyncpg
import pytest

from shared.postgres.errors import describe


@pytest.mark.parametrize(
    ("statement", "value", "says"),
    [
        ("select $1::int", "canary", "DataError: invalid input for query argument $1"),
        ("select $1::int[]", ["canary"], "DataError: invalid input for query argument $1"),
        ("select $1::text", "canary\0", "CharacterNotInRepertoireError: invalid byte sequence"),
        ("insert into kept values ($1)", "canary", "CheckViolationError: new row for relation"),
        ("insert into kept values ($1)", "once", "UniqueViolationError: duplicate key value violates"),
    ],
)
async def test_an_error_about_a_value_does_not_quote_it(database: Any, statement: str, value: Any, says: str) -> None:
    await database.execute("create table kept (word text primary key check (word not like 'canary%'))")
    await database.execute("insert into kept values ('once')")
    with pytest.raises(asyncpg.PostgresError) as error:
        await database.execute(statement, value)
    assert describe(error.value).startswith(says)
    assert "canary" not in describe(error.value)
    assert "once" not in describe(error.value)
