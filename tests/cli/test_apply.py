"""`duebell apply`: schedules become what a file says, and nothing else changes."""

from typing import Any

from tests.cli.command_line import Operator
from tests.support.application import Application
from tests.support.services import running_consumer
from tests.support.stores import Site

FILE = """
labels: {team: billing}
schedules:
  - id: dunning
    cron: "0 9 * * 1-5"
    timezone: Europe/Berlin
    topic: billing.dunning
    payload: {level: 1, big: 12345678901234567890}
    labels: {env: test}
  - id: closing
    at: 2030-01-31T09:00:00
    timezone: Europe/Berlin
    webhook: {url: "https://example.com/hook", headers: {X-Token: secret}}
  - id: poll
    every_seconds: 90
    misfire: latest
"""
APPLY = ("apply", "-f", "-")


async def test_what_is_missing_is_created_what_differs_is_changed_and_the_rest_is_left_alone(
    site: Site, app: Application, database: Any, duebell: Operator
) -> None:
    async def versions() -> dict[str, int]:
        return {row["id"]: row["version"] for row in await database.fetch("select id, version from jobs")}

    async with running_consumer(site):
        planned = await duebell(*APPLY, "--dry-run", stdin=FILE)
        assert planned.status == 1
        assert await versions() == {}
        created = (await duebell(*APPLY, stdin=FILE)).json
        assert [(one["id"], one["action"], one["errors"]) for one in created["changes"]] == [
            ("dunning", "create", []), ("closing", "create", []), ("poll", "create", []),
        ]  # fmt: skip
        assert await database.fetchval("select labels::text from jobs where id = 'dunning'") == (
            '{"env": "test", "team": "billing"}'
        )
        again = await duebell(*APPLY, "--dry-run", stdin=FILE)
        assert (again.status, again.json["changes"], again.json["unchanged"]) == (0, [], 3)
        assert (await duebell(*APPLY, "--table", stdin=FILE)).out == "3 as they should be.\n"
        assert set((await versions()).values()) == {1}

        edited = (
            FILE.replace("0 9 * * 1-5", "30 9 * * 1-5")
            .replace("level: 1", "level: 2")
            .replace("2030-01-31", "2030-02-28")
            .replace("env: test", "env: live")
        )
        shown = await duebell(*APPLY, "--dry-run", "--table", stdin=edited)
        assert shown.out.splitlines() == [
            "~ dunning",
            "    cron: 0 9 * * 1-5 → 30 9 * * 1-5",
            "    payload: another → another",
            "    labels: env=test, team=billing → env=live, team=billing",
            "~ closing",
            "    at: 2030-01-31T08:00:00Z → 2030-02-28T08:00:00Z",
            "2 to change, 1 as they should be.",
        ]
        changed = (await duebell(*APPLY, stdin=edited)).json
        assert [(one["id"], one["action"]) for one in changed["changes"]] == [
            ("dunning", "change"), ("closing", "change"),
        ]  # fmt: skip
        assert await versions() == {"dunning": 2, "closing": 2, "poll": 1}
        assert "secret" not in shown.out

        # A cancelled schedule that the file has comes back; one whose moment has passed does not ring again.
        await app.cancel("poll")
        past = {"id": "past", "at": "2020-01-01T00:00:00Z"}
        await app.request(past)
        await database.execute(
            "update jobs set status = 'done', next_run_at = null, finished_at = now(), last_due_at = next_run_at"
            " where id = 'past'"
        )
        with_past = edited + "  - id: past\n    at: 2020-01-01T00:00:00Z\n"
        [back] = (await duebell(*APPLY, stdin=with_past)).json["changes"]
        assert (back["id"], back["action"]) == ("poll", "create")
        assert (await app.query("poll"))["status"] == "pending"


async def test_what_has_the_label_and_is_not_in_the_file_is_pruned(
    site: Site, app: Application, duebell: Operator
) -> None:
    prune = (*APPLY, "--prune", "--label", "team=billing")
    async with running_consumer(site):
        await duebell(*APPLY, stdin=FILE)
        for job_id, team in (("old", "billing"), ("paused", "billing"), ("other", "sales")):
            await duebell("schedule", job_id, "--in", "1h", "--label", f"team={team}")
        await app.pause("paused")
        refused = await duebell(*prune, stdin=FILE)
        assert refused.status == 1
        assert "This cancels 2 of 2 schedules: say --yes to do it" in refused.err
        pruned = (await duebell(*prune, "--yes", "--note", "tidy", stdin=FILE)).json
        assert [(one["id"], one["action"]) for one in pruned["changes"]] == [("old", "cancel"), ("paused", "cancel")]
        told = await app.query("old")
        assert (told["status"], told["history"][0]["note"]) == ("cancelled", "tidy")
        assert (await app.query("other"))["status"] == "pending"
        assert (await duebell(*prune, stdin=FILE)).json["changes"] == []


async def test_a_file_with_mistakes_changes_nothing_and_each_is_named(duebell: Operator, site: Site) -> None:
    for text, error in (
        ("schedules: [", "is not YAML"),
        ("a: 1\na: 2", "is not YAML"),
        ("[]", "must be an object with `schedules`, a list"),
        ("schedules: []\nscedules: []", "'scedules' is not known"),
        ("labels: team\nschedules: []", "labels: must be an object"),
        ("schedules: [5]", "schedule 1: must be an object"),
        ("schedules: [{id: a, at: 2030-01-01T00:00:00}]", "schedule 1 (a): timezone: is needed"),
        ("schedules: [{id: a, cron: 61 * * * *}]", "schedule 1 (a): cron:"),
        ("schedules: [{id: a, every_seconds: 5, colour: red}]", "schedule 1 (a): colour: is not a field"),
        ("schedules: [{id: a, every_seconds: 5, revision: 2}]", "revision: is given by apply"),
        ("schedules: [{id: a, every_seconds: 5}, {id: a, every_seconds: 5}]", "schedule 2 (a): id: is there twice"),
        ("labels: {te am: x}\nschedules: [{id: a, every_seconds: 5}]", "schedule 1 (a): labels: the key 'te am'"),
    ):
        ended = await duebell(*APPLY, stdin=text)
        assert ended.status == 2, text
        assert error in ended.err, text
    assert (await duebell(*APPLY, "--prune", stdin=FILE)).status == 2
    assert (await duebell("apply", "-f", "/nope.yaml")).status == 2
