"""Rows and messages for benchmarks to work on. Rows are written by Postgres itself: a million in seconds."""

from bench.indexes import without_indexes
from shared.postgres import wake_producers
from shared.postgres.pool import Connection
from shared.recurrence import RuleSpec

PAYLOAD = '{"text": "' + "x" * 100 + '", "n": 1}'
TOPIC = "bench"
# With an hour and a minute of its own, so that rules differ from job to job: 1,440 of them.
DAILY = RuleSpec("2026-01-05T@hour@:@minute@:00Z", timezone="Europe/Berlin", rrule="FREQ=DAILY").to_json()

_COLUMNS = "id, status, revision, topic, payload, misfire, misfire_grace_seconds"

DUE = f"""
insert into jobs ({_COLUMNS}, next_run_at, rule)
select $1 || n, 'pending', 1, $2, $3::text::json, 'all', 60, now() - (n % 1000) * interval '5 milliseconds',
       replace(replace($5, '@hour@', to_char(n / 60 % 24, 'FM00')), '@minute@', to_char(n % 60, 'FM00'))::json
  from generate_series(1, $4) as n
"""  # noqa: S608 - put together from constants

# Many at once are written in the order of their ids, so that the primary key grows at its end.
LATER = f"""
insert into jobs ({_COLUMNS}, next_run_at)
select $1 || to_char(n, 'FM00000000'), 'pending', 1, $2, $3::text::json, 'all', 60,
       now() + interval '1 day' + n * interval '1 second'
  from generate_series(1, $4) as n
"""  # noqa: S608

OVERDUE = f"""
insert into jobs ({_COLUMNS}, next_run_at)
select $1 || n, 'pending', 1, $2, $3::text::json, 'all', 60,
       now() - interval '50 seconds' + n * interval '1 microsecond'
  from generate_series(1, $4) as n
"""  # noqa: S608

DONE = f"""
insert into jobs ({_COLUMNS}, sequence, last_due_at, finished_at)
select $1 || to_char(n, 'FM00000000'), 'done', 1, $2, $3::text::json, 'all', 60, 1, now(), now()
  from generate_series(1, $4) as n
"""  # noqa: S608


async def add_due(database: Connection, count: int, name: str = "due-", rule: str | None = None) -> None:
    """Add jobs that came due within the last five seconds, and tell the producers, as a consumer would."""
    await database.execute(DUE, name, TOPIC, PAYLOAD, count, rule)
    await _settle_down(database)
    await database.execute("select pg_notify($1, '')", wake_producers.CHANNEL)


async def add_overdue(database: Connection, count: int, name: str = "overdue-") -> None:
    """Add jobs that were due most of a minute ago: a backlog."""
    await database.execute(OVERDUE, name, TOPIC, PAYLOAD, count)
    await _settle_down(database)


async def add_later(database: Connection, count: int, name: str = "later-") -> None:
    """Add jobs that are due from tomorrow on."""
    async with without_indexes(database, "jobs"):
        await database.execute(LATER, name, TOPIC, PAYLOAD, count)
    await _settle_down(database)


async def add_done(database: Connection, count: int, name: str = "done-") -> None:
    """Add jobs that have rung."""
    async with without_indexes(database, "jobs"):
        await database.execute(DONE, name, TOPIC, PAYLOAD, count)
    await _settle_down(database)


async def _settle_down(database: Connection) -> None:
    """Vacuum and write a checkpoint, so that the work that many new rows leave behind is not measured."""
    await database.execute("vacuum (analyze) jobs")
    await database.execute("checkpoint")
