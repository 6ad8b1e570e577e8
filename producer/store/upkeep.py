"""The producer's SQL that keeps the tables history and service_instances in shape."""

from datetime import timedelta

from shared.postgres.instances import forget_instances
from shared.postgres.pool import Connection

MAINTAIN_HISTORY = "select maintain_history($1)"


async def maintain(connection: Connection, keep: timedelta) -> None:
    """After the commit: the history has partitions for the next days, and none that ended longer ago than `keep`."""
    await connection.execute(MAINTAIN_HISTORY, keep.total_seconds() / 86400)
    await forget_instances(connection)
