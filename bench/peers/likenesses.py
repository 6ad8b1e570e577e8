"""A million pending jobs of a peer's, in seconds: one that it wrote itself, by its own API, and rows in its likeness
but for their ids and moments. What it keeps beside them for people to read (events, logs) is left out: no claim looks
there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.indexes import without_indexes
from shared.postgres.pool import Connection

# By the peer's own sequence: what waits longest was stored first, and some claim in the order of ids.
NEXT = "nextval(pg_get_serial_sequence('@table@', 'id'))"
LATER = "now() + interval '1 day' + n * interval '1 second'"


@dataclass(frozen=True, slots=True)
class Pending:
    table: str
    differs: Mapping[str, str]  # an expression for each column in which they differ; n is the row's number


PENDING: Mapping[str, Pending] = {
    "pgqueuer": Pending("pgqueuer", {"id": NEXT, "execute_after": LATER}),
    "procrastinate": Pending("procrastinate_jobs", {"id": NEXT, "scheduled_at": LATER}),
    "apscheduler": Pending(
        "apscheduler_jobs", {"id": "'later-' || n", "next_run_time": f"extract(epoch from {LATER})"}
    ),
    "pg_boss": Pending("pgboss.job_common", {"id": "gen_random_uuid()", "start_after": LATER}),
    "graphile_worker": Pending("graphile_worker._private_jobs", {"id": NEXT, "run_at": LATER}),
}

COLUMNS = """
select array_agg(quote_ident(attname) order by attnum)
  from pg_attribute
 where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = ''
"""


async def add_likenesses(database: Connection, peer: str, count: int) -> None:
    """Add copies of the one job that is there, but for ids and moments."""
    table, differs = PENDING[peer].table, PENDING[peer].differs
    columns: list[str] = await database.fetchval(COLUMNS, table)
    values = ", ".join(differs.get(column, column).replace("@table@", table) for column in columns)
    # No trigger, so that nothing is logged or notified for each.
    await database.execute("set session_replication_role = replica")
    async with without_indexes(database, table):
        await database.execute(
            f"insert into {table} ({', '.join(columns)}) overriding system value "  # noqa: S608 - of constants
            f"select {values} from (select * from {table} limit 1) as one, generate_series(1, {count}) as n"
        )
    await database.execute("vacuum (analyze)")
    await database.execute("checkpoint")
