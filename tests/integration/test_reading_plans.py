"""Every query of the console's pages and of its HTTP API reads a bounded number of rows, whatever the tables hold."""

import json
from collections.abc import Iterator
from typing import Any

from console.web.context import PLAN_BY_INDEXES
from shared.reading.bulks import LIST_BULKS
from shared.reading.delay_exchanges import LIST_EXCHANGES
from shared.reading.delayed import FIND_MESSAGES, LIST_MESSAGES, LIST_OF_EXCHANGE, LIST_REFUSED
from shared.reading.delayed_numbers import MESSAGE_NUMBERS
from shared.reading.deliveries import (
    ATTEMPTS_OF_DELIVERIES,
    COUNT_BY_HOST,
    LIST_DELIVERIES,
    LIST_DELIVERIES_OF_JOB,
    NEWEST_OF_JOB,
    READ_DELIVERY,
    WEBHOOK_LATENESS,
    DeliveryState,
)
from shared.reading.future import COUNT_PARTS, DUE_WITHIN
from shared.reading.history import CHANGES, FIRST_ENTRIES, LATENESS_BY_MINUTE
from shared.reading.job_walks import (
    COUNT_JOBS,
    COUNT_LABELED,
    COUNT_OF_TOPIC,
    COUNT_TOPIC,
    FIND_BY_BEGINNING,
    LIST_JOBS,
    LIST_LABELED,
    LIST_OF_TOPIC,
)
from shared.reading.jobs import READ_JOB, JobState
from shared.reading.overview import DELIVERY_NUMBERS, JOB_NUMBERS
from shared.why.store import READ_ENTRIES, READ_LAST_DELIVERIES, READ_STATE

ROWS = 20_000
FILL = """
insert into jobs (id, status, revision, topic, misfire, misfire_grace_seconds, next_run_at, finished_at, retry_at,
                  labels)
select 'job-' || lpad(n::text, 6, '0'), status, 1, case when n % 200 = 6 then 'rare' else 'usual' end, 'all', 60,
       case when status in ('pending', 'paused') then now() + (n * 7919 % $1) * interval '1 minute' end,
       case when status in ('done', 'cancelled') then now() - (n * 7919 % $1) * interval '1 minute' end,
       case when status = 'pending' and n % 10 = 8 then now() + n * interval '1 second' end, '{"team": "a"}'
  from generate_series(1, $1::int) as n,
       lateral (select case when n % 2 = 1 then 'done' when n % 40 = 2 then 'cancelled' when n % 40 = 4 then 'paused'
                            else 'pending' end as status) as of_job
"""
TELL = """
insert into history (at, job_id, what, due_at)
select date_trunc('minute', now()) + n * interval '2 milliseconds',
       case when n % 4 = 1 then 'busy' else 'job-' || n end,
       case n % 3 when 0 then 'accepted' when 1 then 'delivered' else 'dropped' end, now()
  from generate_series(1, $1::int) as n
"""
DELIVER = """
insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, url, host, headers,
                        timeout_seconds, max_retries)
select case when n % 4 = 1 then 'busy' else 'job-' || n end, n, 'usual', 1, now(), now(), 'http://a/', 'a', '{}', 1, 3
  from generate_series(1, $1::int) as n
"""
CALL = "update deliveries set status = 'PROCESSING', version = 2, next_attempt_at = now() + id * interval '1 second'"
END = """
update deliveries
   set status = case when id % 3 = 0 then 'FAILED' else 'COMPLETED' end, version = 3, next_attempt_at = null,
       failure_reason = case when id % 3 = 0 then 'timeout' end, finished_at = now() - id * interval '1 millisecond'
 where id % 5 <> 2
"""
ATTEMPT = """
insert into delivery_attempts (delivery_id, number, started_at, duration_seconds, status_code)
select id, 1, now(), 0.1, 200 from deliveries
"""
DELAY = """
insert into delayed_messages (exchange, routing_key, header, body, due_at, message_id, retry_at)
select n % 10, 'k', '\\x0000', '', now() + (n * 7919 % $1) * interval '1 minute', 'm-' || n,
       case when n % 4 = 1 then now() + n * interval '1 second' end
  from generate_series(1, $1::int) as n
"""
EXCHANGES = "insert into delay_exchanges (exchange) select generate_series(0, 9)"

# At most so many of any table. A query may have some parts, each of which reads 200 rows.
MAX_ROWS_READ = 2_000
NULL, READ, SHOWN = "null", "200", "20"
TODAY = "date_trunc('day', now() at time zone 'UTC') at time zone 'UTC'"
OF_JOBS = ("'42'", NULL, NULL, NULL, NULL, NULL, READ)
OF_NONE = (NULL, NULL)  # neither labels nor an owner
OF_DELIVERIES = (NULL, "'a'", NULL, "'never'", NULL, NULL, READ)
OF_MESSAGES = ("'k'", NULL, NULL, NULL, NULL, READ, SHOWN)
QUERIES: dict[str, tuple[str, tuple[str, ...]]] = {
    **{f"list {one}": (LIST_JOBS[one], (*OF_JOBS, f"'{one}'", *OF_NONE, SHOWN)) for one in JobState},
    **{f"count {one}": (COUNT_JOBS[one], (*OF_JOBS, f"'{one}'", *OF_NONE)) for one in JobState},
    "list labeled": (LIST_LABELED, (*OF_JOBS, "'pending'", """'{"team": "a"}'""", NULL, "'team=a'", SHOWN)),
    "count labeled": (COUNT_LABELED, (*OF_JOBS, "'pending'", """'{"team": "a"}'""", NULL, "'team=a'")),
    "list of topic": (LIST_OF_TOPIC, ("'42'", "'rare'", *OF_JOBS[2:], "'pending'", *OF_NONE, SHOWN)),
    "count of topic": (COUNT_OF_TOPIC, ("'42'", "'rare'", *OF_JOBS[2:], "'pending'", *OF_NONE)),
    "list of owner": (LIST_JOBS[JobState.ALL], (*OF_JOBS, "'all'", NULL, "'alice'", SHOWN)),
    "count topic": (COUNT_TOPIC, ("'usual'", READ)),
    "find by beginning": (FIND_BY_BEGINNING, ("'job-0101'", READ, SHOWN)),
    "job": (READ_JOB, ("'job-000042'",)),
    "state": (READ_STATE, ("'job-000042'",)),
    "entries": (READ_ENTRIES, ("'busy'", READ)),
    "last deliveries": (READ_LAST_DELIVERIES, ("'busy'", SHOWN)),
    "changes": (CHANGES, ("'42'", "'alice'", "'{}'", NULL, NULL, READ, SHOWN)),
    "first entries": (FIRST_ENTRIES, ("'{0, 7, 90, 100000}'", TODAY)),
    "lateness": (LATENESS_BY_MINUTE, (TODAY, "array[date_trunc('minute', now()), now()]", "'{0, 50}'", "4", SHOWN)),
    "job numbers": (JOB_NUMBERS, (READ,)),
    "delivery numbers": (DELIVERY_NUMBERS, (READ, "'1 day'")),
    "message numbers": (MESSAGE_NUMBERS, (READ,)),
    "parts": (COUNT_PARTS, ("now()", "'1 hour'", "30", SHOWN)),
    "due within": (DUE_WITHIN, ("now()", "'{1 hour, 1 day, 7 days}'", READ)),
    **{
        f"list {one}": (LIST_DELIVERIES[one], (*OF_DELIVERIES, f"'{one.upper()}'", SHOWN)) for one in DeliveryState
    },
    "list of job": (LIST_DELIVERIES_OF_JOB, ("'busy'", *OF_DELIVERIES[1:], "'FAILED'", SHOWN)),
    "newest of job": (NEWEST_OF_JOB, ("'busy'", SHOWN)),
    "hosts": (COUNT_BY_HOST, (READ, SHOWN)),
    "webhook lateness": (WEBHOOK_LATENESS, (READ,)),
    "attempts": (ATTEMPTS_OF_DELIVERIES, ("'{1, 2, 3}'",)),
    "delivery": (READ_DELIVERY, ("42",)),
    "list messages": (LIST_MESSAGES, (NULL, *OF_MESSAGES)),
    "list refused messages": (LIST_REFUSED, (NULL, *OF_MESSAGES)),
    "list messages of exchange": (LIST_OF_EXCHANGE, ("'7'", *OF_MESSAGES)),
    "find messages": (FIND_MESSAGES, ("'m-42'", "7", SHOWN)),
    "exchanges": (LIST_EXCHANGES, (SHOWN, SHOWN)),
    "bulks": (LIST_BULKS, (SHOWN,)),
}  # fmt: skip


async def test_every_query_reads_a_bounded_number_of_rows(database: Any) -> None:
    for statement in (FILL, TELL, DELIVER, DELAY):
        await database.execute(statement, ROWS)
    for statement in (CALL, END, ATTEMPT, EXCHANGES):
        await database.execute(statement)
    await database.execute(
        "update jobs set next_run_at = date_trunc('hour', now()) + interval '2 hours' where id > 'job-010' "
        "and status = 'pending'"
    )
    await database.execute(
        "vacuum (analyze) jobs, job_labels, history, deliveries, delivery_attempts, delayed_messages, delay_exchanges"
    )
    async with database.transaction(readonly=True):
        await database.execute(PLAN_BY_INDEXES)
        read = {name: await _rows_read(database, *query) for name, query in QUERIES.items()}
    assert {name: rows for name, rows in read.items() if rows > MAX_ROWS_READ} == {}
    assert sum(rows > 0 for rows in read.values()) > len(read) / 2


async def _rows_read(database: Any, statement: str, given: tuple[str, ...]) -> int:
    await database.execute(f"prepare asked as {statement}")
    try:
        explained = await database.fetchval(
            f"explain (analyze, timing off, format json) execute asked ({', '.join(given)})"
        )
    finally:
        await database.execute("deallocate asked")
    [plan] = json.loads(explained)
    return sum(
        node["Actual Loops"]
        * sum(node.get(kind, 0) for kind in ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"))
        for node in _nodes(plan["Plan"])
        if "Relation Name" in node
    )


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)
