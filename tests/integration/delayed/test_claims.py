"""Claims of delayed messages: what they read, whatever waits beside it, and how much they load."""

import json
from typing import Any

import pytest

from consumer.commands.to_messages import MAX_MEANT_MESSAGES
from consumer.store.delayed import lock_waiting
from producer.decisions.due_event import MAX_CLAIM_BYTES
from producer.store.delayed import (
    CLAIM_DELAYED,
    CLAIM_DELAYED_OVERDUE,
    CLAIM_DELAYED_RETRY,
    DELAYED,
    DELAYED_OVERDUE,
    NEXT_DELAYED,
    NEXT_DELAYED_RETRY,
    claim_messages,
)
from producer.store.delayed_samples import sample_delayed, sample_exchanges
from producer.store.lanes import PRODUCER_PLANNER_SETTINGS
from shared.reading.delayed import LIST_MESSAGES, LIST_OF_EXCHANGE, LIST_REFUSED
from shared.reading.delayed_numbers import MessageNumbers, count_messages

WAITING = """
insert into delayed_messages (exchange, routing_key, header, body, due_at, retry_at, refusals, message_id)
select 'orders', 'k', '\\x0000', convert_to($2, 'UTF8'), now() + $3::text::interval, case when $4 then now() end,
       case when $4 then 1 else 0 end, 'm-' || n
  from generate_series(1, $1::int) as n
"""


async def fill(database: Any) -> None:
    """Fill the table as it is in production: many messages wait, a few are due."""
    for number, after, refused in ((20_000, "1 day", False), (500, "-1 second", False), (500, "-1 hour", False)):
        await database.execute(WAITING, number, "body", after, refused)
    await database.execute(WAITING, 500, "body", "-1 hour", True)
    await database.execute("insert into delay_exchanges (exchange) values ('orders'), ('empty')")
    await database.execute("vacuum analyze delayed_messages")


async def scans_of(database: Any, statement: str, *parameters: str) -> list[dict[str, Any]]:
    for number, value in enumerate(parameters, start=1):
        statement = statement.replace(f"${number}", value)
    for setting, value in PRODUCER_PLANNER_SETTINGS.items():
        await database.execute(f"set {setting} = {value}")
    [plan] = json.loads(await database.fetchval(f"explain (analyze, format json) {statement}"))
    found, left = [], [plan["Plan"]]
    while left:
        node = left.pop()
        left += node.get("Plans", [])
        if node.get("Relation Name") == "delayed_messages" and "Scan" in node["Node Type"]:
            found.append(node)
    return found


@pytest.mark.parametrize(
    ("statement", "index"),
    [(CLAIM_DELAYED, "delayed_due"), (CLAIM_DELAYED_OVERDUE, "delayed_due"), (CLAIM_DELAYED_RETRY, "delayed_refused")],
    ids=["due now", "overdue", "retry"],
)
async def test_a_claim_walks_its_index_and_reads_what_it_claims(database: Any, statement: str, index: str) -> None:
    await fill(database)
    scans = await scans_of(database, statement, "null::timestamptz", "100", "1000000")
    used = {node["Index Name"]: node["Actual Rows"] * node["Actual Loops"] for node in scans if "Index Name" in node}
    assert used == {index: 100, "delayed_messages_pkey": 100}
    # Only the table lock, of which Postgres knows that it finds no row, is without an index.
    assert [node for node in scans if "Index Name" not in node and node["Actual Rows"]] == []


@pytest.mark.parametrize(
    ("statement", "index"), [(NEXT_DELAYED, "delayed_due"), (NEXT_DELAYED_RETRY, "delayed_refused")]
)
async def test_looking_ahead_reads_one_row(database: Any, statement: str, index: str) -> None:
    await fill(database)
    await database.execute("update delayed_messages set retry_at = now() + interval '1 hour' where refusals > 0")
    [scan] = await scans_of(database, statement, "null::timestamptz")
    assert (scan["Index Name"], scan["Actual Rows"]) == (index, 1)


async def test_a_claim_loads_eight_megabytes_and_one_message_at_most(database: Any) -> None:
    await database.execute(WAITING, 40, "x" * 1_000_000, "-1 hour", False)
    async with database.transaction():
        claim = await claim_messages(database, DELAYED_OVERDUE, 1000, MAX_CLAIM_BYTES)
        assert claim is not None
        assert sum(len(row.message.body) for row in claim.rows) <= MAX_CLAIM_BYTES + 1_000_000
        assert claim.found == 40 > len(claim.rows) > 1
        assert [row.id for row in claim.rows] == sorted(row.id for row in claim.rows)


async def test_the_samples_count_what_waits_by_exchange(database: Any) -> None:
    await fill(database)
    assert await claim_messages(database, DELAYED, 1, MAX_CLAIM_BYTES) is not None
    sample = await sample_delayed(database, 1000)
    assert (sample.overdue, sample.oldest_overdue_seconds > 3000) == (1000, True)
    assert sample.waiting > 20_000, "the estimate of Postgres"
    assert [(e.name, e.waiting, e.refused) for e in await sample_exchanges(database, 1000, 100)] == [
        ("empty", 0, 0),
        ("orders", 1000, 500),
    ]


async def test_the_status_counts_overdue_and_refused_messages_apart(database: Any) -> None:
    assert await count_messages(database) == MessageNumbers()
    await fill(database)
    seen = await count_messages(database)
    assert (seen.overdue, seen.refused) == (1000, 500)
    assert seen.waiting > 20_000, "the estimate of Postgres"
    assert seen.overdue_since is not None
    assert seen.refused_since is not None
    # A message whose moment was past when it came is overdue since it came.
    assert seen.overdue_since > seen.refused_since


@pytest.mark.parametrize(
    ("statement", "exchange", "index"),
    [
        (LIST_MESSAGES, "null", "delayed_due"),
        (LIST_REFUSED, "null", "delayed_refused"),
        (LIST_OF_EXCHANGE, "'orders'", "delayed_by_exchange"),
    ],
    ids=["all", "refused", "of an exchange"],
)
async def test_a_page_of_the_list_reads_what_it_shows(database: Any, statement: str, exchange: str, index: str) -> None:
    await fill(database)
    nothing = "null::timestamptz"
    parameters = (f"{exchange}::text", "null::bytea", nothing, nothing, nothing, "null::bigint", "50", "50")
    scans = await scans_of(database, statement, *parameters)
    read = {node["Index Name"]: node["Actual Rows"] * node["Actual Loops"] for node in scans if "Index Name" in node}
    assert read.pop(index) == 50
    assert all(rows <= 50 for rows in read.values()), read
    assert [node for node in scans if "Index Name" not in node] == []


async def test_a_command_locks_no_more_than_one_message_too_many(database: Any) -> None:
    await database.execute(WAITING, MAX_MEANT_MESSAGES + 5, "body", "1 day", False)
    await database.execute("update delayed_messages set message_id = 'm' where id > 3")
    await database.execute("update delayed_messages set name = 'm' where id = 1")
    async with database.transaction():
        found = await lock_waiting(database, ["m", "m-2"], [3])
    assert len(found) == MAX_MEANT_MESSAGES + 4
    assert {1, 2, 3} < {message.id for message in found}
