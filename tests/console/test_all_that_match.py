"""All schedules that match are counted, and paused when the operator agrees."""

import asyncio
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
    for path, action in (("/bulk", "pause"), ("/bulk?label=team", "pause"), ("/bulk?label=team%3Da", "drop")):
        assert act(path, action).status == 400
    assert read(console, "/bulk?id=nope").status == 404
