"""`duebell list`: every job is found, beyond the limit of one list, too; and a job that never was is explained."""

import asyncio
import os
import shlex
import signal
import sys
from datetime import UTC, datetime
from typing import Any

from cli.job_list import next_command
from cli.stores import Address, Stores
from shared.contract.names import Names
from shared.reading.jobs import Cursor
from tests.cli.command_line import PIPE, Ended, Operator
from tests.support.application import Application
from tests.support.delivery_rows import insert_rows
from tests.support.job_rows import insert_due
from tests.support.services import running_consumer
from tests.support.stores import Site


def test_the_command_for_the_next_page_says_all_that_was_chosen() -> None:
    options = {"--state": "done", "--search": "it's", "--topic": None, "--limit": "2"}
    line = next_command(options, Cursor(datetime(2030, 1, 1, tzinfo=UTC), "a b"))
    assert line == ("""duebell list --state done --search 'it'"'"'s' --limit 2 --after '2030-01-01T00:00:00Z/a b'""")


async def follow(duebell: Operator, *arguments: str) -> list[str]:
    """The ids of a list and of those that it says come next."""
    ids: list[str] = []
    while True:
        ended: Ended = await duebell(*arguments)
        ids += [job["id"] for job in ended.json]
        if "The next: " not in ended.err:
            return ids
        arguments = tuple(shlex.split(ended.err.partition("The next: ")[2])[1:])


async def test_every_job_is_found_by_part_of_its_id_and_by_state(site: Site, database: Any, duebell: Operator) -> None:
    await insert_due(database, 6, prefix="tea-")
    await insert_due(database, 2, prefix="cake-", topic="kitchen")
    await database.execute("update jobs set retry_at = now(), refusals = 2 where id ~ 'tea-.*1'")
    await database.execute("update jobs set status = 'paused' where id ~ 'tea-.*2'")
    await database.execute(
        "update jobs set status = 'done', finished_at = now(), next_run_at = null where id ~ 'tea-.*3'"
    )
    [found] = (await duebell("list", "--search", "KE-000002")).json
    assert (found["id"], found["status"], found["topic"]) == ("cake-000002", "pending", "kitchen")
    by_state = {
        state: [job["id"] for job in (await duebell("list", "--state", state)).json]
        for state in ("paused", "done", "cancelled", "refused")
    }
    assert by_state == {
        "paused": ["tea-000002"], "done": ["tea-000003"], "cancelled": [], "refused": ["tea-000001"],
    }  # fmt: skip
    [refused] = (await duebell("list", "--refused")).json
    assert (refused["id"], refused["refusals"]) == ("tea-000001", 2)
    assert len((await duebell("list", "--state", "all")).json) == 8
    assert sorted(await follow(duebell, "list", "--limit", "2")) == [
        "cake-000001", "cake-000002", "tea-000001", "tea-000004", "tea-000005", "tea-000006",
    ]  # fmt: skip
    assert await follow(duebell, "list", "--search", "tea", "--limit", "1") == [f"tea-00000{n}" for n in range(1, 7)]

    table = await duebell("list", "--state", "all", "--limit", "3", "--table")
    assert "3 of 8 jobs" in table.out
    assert "The next: duebell list --state all --limit 3 --after /tea-000001" in table.out


async def test_an_open_delivery_has_the_reason_of_its_last_attempt(database: Any, duebell: Operator) -> None:
    await insert_rows(database, "example.com:443", 4)
    await database.execute(
        "insert into delivery_attempts (delivery_id, number, started_at, duration_seconds, status_code, error)"
        " select id, 1, now(), 0.1, 500, null from deliveries where job_id in ('job-1', 'job-4')"
        " union all select id, 2, now(), 0.1, null, 'timeout' from deliveries where job_id = 'job-1'"
    )
    await database.execute(
        "update deliveries set status = 'PROCESSING', version = 2 where job_id in ('job-3', 'job-4')"
    )
    await database.execute(
        "update deliveries set status = 'COMPLETED', version = 3, next_attempt_at = null, finished_at = now()"
        " where job_id = 'job-4'"
    )
    opened = (await duebell("deliveries", "list", "--state", "open")).json
    assert {one["job_id"]: (one["attempts"], one["failure_reason"]) for one in opened} == {
        "job-1": (2, "timeout"), "job-2": (0, None), "job-3": (0, None),
    }  # fmt: skip
    [completed] = (await duebell("deliveries", "list", "--state", "completed")).json
    assert (completed["attempts"], completed["failure_reason"]) == (1, None)


async def test_wrong_choices_say_what_to_give(duebell: Operator) -> None:
    for arguments, says in {
        ("list", "--after", "tea"): "--after: 'tea' is not a cursor",
        ("list", "--refused", "--state", "done"): "--refused: is a state of its own",
        ("list", "--state", "ended"): "'cancelled'",
        ("list", "--watch"): "--watch: is for a terminal",
        ("list", "--timezone", "Berlin", "--table"): "--timezone: 'Berlin' is not an IANA time zone",
    }.items():
        ended = await duebell(*arguments)
        assert ended.status == 2, (arguments, ended)
        assert says in ended.err


async def test_an_id_whose_command_was_parked_says_so(site: Site, app: Application, duebell: Operator) -> None:
    async with running_consumer(site):
        await app.ask({"id": "bad", "cron": "61 9 * * *"})
        shown = await duebell("show", "bad")
        assert shown.status == 1
        assert "there is no job 'bad'. The last message was rejected: cron: minute: '61'" in shown.err
        assert "duebell parked list --job bad" in shown.err
    unknown = await duebell("show", "nope")
    assert unknown.status == 1
    assert "duebell list --state all --search nope" in unknown.err


async def test_a_list_is_watched_until_ctrl_c(site: Site, database: Any) -> None:
    """The second picture has what has changed since the first."""
    await insert_due(database, 1, prefix="first-")
    process = await asyncio.create_subprocess_exec(
        # A run of the tests in the background ignores Ctrl-C, and so would what it starts.
        "env", "--default-signal=INT", "script", "-qfec", f"{sys.executable} -m cli list --watch", "/dev/null",
        env={**os.environ, **site.environment, "COLUMNS": "120", "LINES": "30"}, stdin=PIPE, stdout=PIPE,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    try:
        async with asyncio.timeout(60):
            await process.stdout.readuntil(b"first-000001")
            await insert_due(database, 1, prefix="second-")
            await process.stdout.readuntil(b"second-000001")
            process.stdin.write(b"\x03")
            await process.stdin.drain()
            await process.stdout.read()
            assert await process.wait() == 128 + signal.SIGINT
    finally:
        if process.returncode is None:
            process.kill()


async def test_what_a_command_reads_is_of_one_moment(site: Site, database: Any) -> None:
    stores = Stores(Address("DATABASE_URL", site.database_url, ""), Address("AMQP_URL", site.amqp_url, ""), Names(), 1)
    async with stores.database() as connection:
        before = await connection.fetchval("select count(*) from jobs")
        await insert_due(database, 1)
        assert await connection.fetchval("select count(*) from jobs") == before
