"""ScheduleBulk, from the command to the verdict."""

import json
from typing import Any

from consumer.store.bulk_walk import BY_LABEL, IN_TOPIC, NEXT_TOPIC, PLAN_IN_ORDER
from stack.roles import OPERATOR
from tests.support.application import Application
from tests.support.builders import a_request
from tests.support.job_rows import insert_due
from tests.support.services import running_consumer
from tests.support.stores import Site

KEY = "schedule.bulk"


def a_bulk(**fields: Any) -> dict[str, Any]:
    return {"id": "b-1", "action": "pause", "selector": {"labels": {"team": "a"}}, **fields}


async def test_a_bulk_is_answered_when_it_is_finished_and_can_be_asked_for(
    site: Site, app: Application, database: Any
) -> None:
    await insert_due(database, 1_200)
    await database.execute("update jobs set next_run_at = now() + interval '1 day', labels = '{\"team\": \"a\"}'")
    await database.execute("update jobs set status = 'paused' where id = 'job-000001'")
    async with running_consumer(site):
        dry = await app.ask(a_bulk(id="dry", dry_run=True), key=KEY)
        assert (dry["outcome"], dry["bulk"]["matched"], dry["bulk"]["changed"]) == ("finished", 1_200, 1_199)
        assert await database.fetchval("select count(*) from jobs where status = 'paused'") == 1
        assert await database.fetchval("select count(*) from history") == 0

        done = await app.ask(a_bulk(note="holidays"), key=KEY, app_id="billing", headers={"duebell-operator": "alice"})
        assert (done["id"], done["outcome"], done["errors"]) == ("b-1", "finished", [])
        assert (done["bulk"]["action"], done["bulk"]["dry_run"]) == ("pause", False)
        assert (done["bulk"]["matched"], done["bulk"]["changed"]) == (1_200, 1_199)
        assert done["bulk"]["requested_at"] < done["bulk"]["finished_at"]
        assert await database.fetchval("select count(*) from jobs where status = 'paused'") == 1_200
        [entry] = (await app.query("job-000002"))["history"]
        assert (entry["what"], entry["app_id"], entry["operator"], entry["note"], entry["details"]) == (
            "paused", "billing", "alice", "holidays", {"bulk": "b-1"},
        )  # fmt: skip
        [whole] = await database.fetch("select * from history where what = 'bulk'")
        assert (whole["job_id"], whole["operator"], whole["note"]) == ("b-1", "alice", "holidays")
        assert json.loads(whole["details"]) == {
            "action": "pause", "selector": {"labels": {"team": "a"}}, "matched": 1_200, "changed": 1_199,
        }  # fmt: skip

        again = await app.ask(a_bulk(), key=KEY)
        assert (again["outcome"], again["errors"], again["bulk"]) == ("duplicate", [], done["bulk"])
        other = await app.ask(a_bulk(action="cancel"), key=KEY)
        assert (other["outcome"], other["errors"]) == (
            "duplicate", ["id: a bulk with this id has another action or selector"],
        )  # fmt: skip
        found = await app.query("b-1")
        assert (found["outcome"], found["bulk"]) == ("found", done["bulk"])

        wrong = await app.ask(a_bulk(selector={}), key=KEY)
        assert wrong["errors"] == ["selector: at least one of labels, topic and id_prefix is needed"]
        [parked] = await app.parked(1)
        assert json.loads(parked.body)["selector"] == {}

        # In one batch: the bulk changes what was asked for before it, and nothing that was asked for after it.
        await app.send(a_request(id="z-1", topic="z"))
        sent = await app.send(a_bulk(id="b-2", action="cancel", selector={"topic": "z"}), key=KEY, reply=True)
        await app.send(a_request(id="z-2", topic="z"))
        assert (await app.reply(sent))["bulk"]["matched"] == 1
        assert (await app.query("z-2"))["status"] == "pending"
        assert (await app.query("z-1"))["status"] == "cancelled"


async def test_a_bulk_belongs_to_its_user(site: Site, app: Application, database: Any) -> None:
    async with running_consumer(site):
        await app.ask(a_request(labels={"team": "a"}), user_id=OPERATOR)
        await app.ask(a_request(id="free", labels={"team": "a"}))
        assert (await app.ask(a_bulk(), key=KEY))["bulk"]["matched"] == 1
        mine = await app.ask(a_bulk(id="b-2"), key=KEY, user_id=OPERATOR)
        assert (mine["bulk"]["matched"], mine["bulk"]["changed"]) == (2, 1)
        refused = await app.ask(a_bulk(id="b-2"), key=KEY)
        assert (refused["outcome"], refused["errors"]) == ("rejected", ["user_id: the bulk belongs to another user"])
        assert (await app.query("b-2"))["errors"] == ["user_id: the bulk belongs to another user"]
        told = "select details->>'command' from history where job_id = 'b-2' and what = 'rejected'"
        assert await database.fetch(told) == [("bulk",)]


async def test_each_part_of_a_walk_is_read_from_an_index(database: Any) -> None:
    await insert_due(database, 6_000)
    await database.execute("""
        update jobs set topic = 'topic-' || (payload #>> '{}')::int % 10,
                        labels = jsonb_build_object('team', (payload #>> '{}')::int % 10)""")
    await database.execute("vacuum analyze jobs, job_labels")
    fits = "now(), null, true, null, null"
    walks = "'job-000100', '', 'k', 500"
    assert await _indexes(database, BY_LABEL, f"{fits}, 'team=1', {walks}") == {"job_labels_pkey", "jobs_pkey"}
    assert await _indexes(database, IN_TOPIC, f"{fits}, 'topic-1', {walks}") == {"jobs_by_topic"}
    assert await _indexes(database, NEXT_TOPIC, "'topic-1', 'topic-9'") == {"jobs_by_topic"}


async def _indexes(database: Any, statement: str, given: str) -> set[str]:
    values = [value.strip() for value in given.split(",")]
    for number in range(len(values), 0, -1):
        statement = statement.replace(f"${number}", values[number - 1])
    async with database.transaction():
        await database.execute(PLAN_IN_ORDER.replace("$1", "'off'"))
        plan = json.loads(await database.fetchval(f"explain (format json) {statement}"))[0]["Plan"]
    found, left = set(), [plan]
    while left:
        node = left.pop()
        left += node.get("Plans", [])
        assert node["Node Type"] not in {"Seq Scan", "Sort"}, plan
        found |= {node["Index Name"]} if "Index Name" in node else set()
    return found
