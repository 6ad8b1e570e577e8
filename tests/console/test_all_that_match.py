"""All schedules that match are counted, and paused when the operator agrees."""

import asyncio
import json
import re

from tests.console.running_console import OPERATOR, VIEWER, Answered, RunningConsole
from tests.support.eventually import eventually


def read(console: RunningConsole, path: str, user: str = OPERATOR, form: dict[str, str] | None = None) -> Answered:
    return console.ask(path, form, {"Cookie": console.session_of(user)})


def until_it_says(console: RunningConsole, path: str, text: str) -> str:
    async def look() -> str | None:
        page = (await asyncio.to_thread(read, console, path)).text
        return page if text in page else None

    return asyncio.run(eventually(look)) or ""


A_JOB_WITH_OWNER = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at, owner)
values ('owned', 'pending', 1, 'default', '1', 'all', 60, now() + interval '1 year', 'shop-backend')
"""


def test_schedules_are_listed_by_their_owner(console: RunningConsole) -> None:
    console.fetch(A_JOB_WITH_OWNER)
    page = read(console, "/schedules?owner=shop-backend").text
    assert re.findall(r'name="id" value="([^"]+)"', page) == ["owned"]
    assert "/schedules?state=pending&amp;owner=shop-backend" in page
    api = read(console, "/api/v1/schedules?owner=shop-backend").text
    assert [one["id"] for one in json.loads(api)["schedules"]] == ["owned"]
    assert read(console, "/schedules?owner=shop").text.count("data-mark") == 0


def test_all_with_a_label_are_found_counted_paused_and_resumed(console: RunningConsole) -> None:
    console.command(*(
        ("schedule.request", {"id": f"rota-{number}", "cron": "0 9 * * *", "labels": {"team": team, "env": "x"}})
        for number, team in enumerate(("a", "a", "b"))
    ))  # fmt: skip
    page = read(console, "/schedules?label=team%3Da")
    assert re.findall(r'name="id" value="([^"]+)"', page.text) == ["rota-0", "rota-1"]
    assert "team=a" in page.text
    assert "All that match" not in read(console, "/schedules").text
    assert "All that match" not in read(console, "/schedules?label=team%3Da", VIEWER).text
    # A bulk would not keep to the other filters of the page.
    for further in ("owner=shop", "since=2030-01-01T00:00", "until=2030-01-01T00:00", "state=done", "state=cancelled"):
        assert "All that match" not in read(console, f"/schedules?label=team%3Da&{further}").text
    assert "label: " in read(console, "/schedules?label=team").text
    [token] = set(re.findall(r'name="form_token" value="([^"]+)"', page.text))

    def act(path: str, action: str) -> Answered:
        return read(console, path, form={"form_token": token, "action": action, "note": "moving house"})

    counting = act("/bulk?label=team%3Da", "pause")
    assert counting.status == 303
    counted = counting.headers["location"]
    says = until_it_says(console, counted, "that match would change")
    assert "<strong>2</strong> of 2 that match would change" in says
    assert console.fetch("select id from jobs where id like 'rota-%' and status = 'paused'") == []
    assert read(console, counted, VIEWER).status == 200
    assert read(console, counted, VIEWER, {"form_token": token, "action": "carry-out"}).status == 403

    done = act(counted, "carry-out").headers["location"]
    assert act(counted, "carry-out").headers["location"] == done
    assert "<strong>2</strong> changed, of 2 that matched" in until_it_says(console, done, "Done:")
    paused = console.fetch("select id from jobs where id like 'rota-%' and status = 'paused' order by id")
    assert [row["id"] for row in paused] == ["rota-0", "rota-1"]
    told = console.fetch("select distinct operator, note from history where what = 'paused' and job_id like 'rota-%'")
    assert told == [{"operator": OPERATOR, "note": "moving house"}]
    assert "moving house" in read(console, "/bulk").text
    assert "pause of team=a: 2 jobs changed" in read(console, "/history").text
    assert act(done, "carry-out").status == 400

    until_it_says(console, act("/bulk?topic=default&search=rota-1", "resume").headers["location"], "1</strong> of 1")
    for path, action in (
        ("/bulk", "pause"),
        ("/bulk?label=team", "pause"),
        ("/bulk?label=team%3Da", "drop"),
        ("/bulk?label=team%3Da&owner=shop", "pause"),
    ):
        assert act(path, action).status == 400
    assert read(console, "/bulk?id=nope").status == 404
