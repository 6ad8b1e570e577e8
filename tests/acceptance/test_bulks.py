"""A bulk outlives the consumer that works on it."""

from pathlib import Path
from typing import Any

from tests.support.application import Application
from tests.support.eventually import eventually
from tests.support.job_rows import insert_due
from tests.support.services import service_process
from tests.support.stores import Site

JOBS = 6_000


async def test_a_bulk_goes_on_where_a_killed_consumer_left_it(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    await insert_due(database, JOBS)
    await database.execute("update jobs set next_run_at = now() + interval '1 day'")
    command = {"id": "all", "action": "pause", "selector": {"id_prefix": "job-"}}

    async def it_has_begun() -> bool:
        return bool(await database.fetchval("select steps > 1 from bulks"))

    with service_process("consumer", site, tmp_path) as consumer:
        sent = await app.send(command, key="schedule.bulk", reply=True)
        await eventually(it_has_begun)
        consumer.kill()
        assert await database.fetchval("select finished_at is null from bulks")
    with service_process("consumer", site, tmp_path):
        reply = await app.reply(sent)
    assert (reply["outcome"], reply["bulk"]["matched"], reply["bulk"]["changed"]) == ("finished", JOBS, JOBS)
    told = "select count(*), count(distinct job_id) from history where what = 'paused'"
    assert tuple(await database.fetchrow(told)) == (JOBS, JOBS)
