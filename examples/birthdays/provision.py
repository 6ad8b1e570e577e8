"""`python -m examples.birthdays.provision`, once, with the operator's DATABASE_URL and a BIRTHDAYS_PASSWORD: a database
role for the application that owns a schema of its own, and has no right to anything else.

Its user of the broker is in roles/rabbitmq.json: put the password into it, and `rabbitmqctl import_definitions` it.
"""

import asyncio
import os
from importlib import resources

import asyncpg

from examples.birthdays.database import SCHEMA

ROLE = USER = "birthdays"
MAKE_ROLE = f"""
do $$ begin
    if not exists (select from pg_roles where rolname = '{ROLE}') then
        create role {ROLE};
    end if;
end $$
"""
ALLOW_LOGIN = "select format('alter role %I login nosuperuser nocreatedb nocreaterole password %L', $1::text, $2::text)"
MAKE_SCHEMA = f"create schema if not exists {SCHEMA} authorization {ROLE}"


async def provision(operator_url: str, password: str) -> None:
    connection = await asyncpg.connect(operator_url, timeout=10, command_timeout=30)
    try:
        async with connection.transaction():
            await connection.execute(MAKE_ROLE)
            await connection.execute(await connection.fetchval(ALLOW_LOGIN, ROLE, password))
            await connection.execute(MAKE_SCHEMA)
    finally:
        await connection.close(timeout=5)


def broker_definitions(password: str, prefix: str = "") -> str:
    """Return definitions for `rabbitmqctl import_definitions`. `prefix` is a pattern for what may stand before the
    names.
    """
    text = resources.files(__package__).joinpath("roles", "rabbitmq.json").read_text()
    return text.replace("@PREFIX@", prefix).replace("@BIRTHDAYS_PASSWORD@", password)


if __name__ == "__main__":
    asyncio.run(provision(os.environ["DATABASE_URL"], os.environ["BIRTHDAYS_PASSWORD"]))
