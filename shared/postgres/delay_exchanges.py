"""SQL that writes down which delay exchanges are open: the consumer for its setting, `duebell delay` for an operator.
The exchanges themselves are in the broker: see shared.amqp.topology.
"""

from collections.abc import Collection

from shared.postgres.pool import Connection

OPEN_EXCHANGES = """
insert into delay_exchanges (exchange) select unnest($1::text[])
    on conflict (exchange) do update set closed_at = null, opened_at = now()
     where delay_exchanges.closed_at is not null
"""


async def open_exchanges(connection: Connection, targets: Collection[str]) -> None:
    """After the commit: the delay exchanges of these targets are known, and open."""
    await connection.execute(OPEN_EXCHANGES, sorted(targets))


CLOSE_EXCHANGE = "update delay_exchanges set closed_at = now() where exchange = $1 and closed_at is null"


async def close_exchange(connection: Connection, target: str) -> None:
    """After the commit: the delay exchange of the target is closed, if it was open."""
    await connection.execute(CLOSE_EXCHANGE, target)
