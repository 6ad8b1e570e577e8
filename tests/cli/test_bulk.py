"""`duebell bulk`, and labels on the command line, against a running consumer."""

from tests.cli.command_line import Operator
from tests.support.application import Application
from tests.support.services import running_consumer
from tests.support.stores import Site


async def test_all_jobs_with_a_label_are_counted_paused_and_found(
    site: Site, app: Application, duebell: Operator
) -> None:
    async with running_consumer(site):
        for number, team in enumerate(("a", "a", "b")):
            labels = ("--label", f"team={team}", "--label", "env=test")
            assert (await duebell("schedule", f"tea-{number}", "--in", "1h", *labels)).json["outcome"] == "accepted"
        listed = (await duebell("list", "--label", "team=a", "--label", "env=test")).json
        assert [(job["id"], job["labels"]) for job in listed] == [
            (f"tea-{number}", {"env": "test", "team": "a"}) for number in range(2)
        ]
        assert (await duebell("show", "tea-2")).json["job"]["labels"] == {"env": "test", "team": "b"}
        assert "team=b" in (await duebell("show", "tea-2", "--table")).out
        assert "--label" in (await duebell("list", "--label", "env=test", "--limit", "1")).err

        counted = (await duebell("bulk", "pause", "--label", "team=a", "--dry-run")).json
        assert (counted["matched"], counted["changed"], counted["dry_run"]) == (2, 2, True)
        refused = await duebell("bulk", "pause", "--label", "team=a")
        assert refused.status == 1
        assert "This pauses 2 jobs: say --yes to do it" in refused.err
        done = (await duebell("bulk", "pause", "--label", "team=a", "--note", "holidays", "--id", "b-1", "--yes")).json
        assert (done["id"], done["matched"], done["changed"]) == ("b-1", 2, 2)
        assert [job["id"] for job in (await duebell("list", "--state", "paused", "--label", "env=test")).json] == [
            "tea-0",
            "tea-1",
        ]
        assert (await duebell("bulk", "resume", "--id-prefix", "tea", "--table", "--yes")).out == (
            "2 jobs changed. 1 more matched and needs no change.\n"
        )
        shown = (await duebell("bulk", "show", "b-1")).json
        assert (shown["note"], shown["labels"], shown["changed"]) == ("holidays", {"team": "a"}, 2)
        assert {bulk["id"] for bulk in (await duebell("bulk", "show")).json} > {"b-1"}
        assert (await duebell("bulk", "show", "nope")).status == 1


async def test_a_bulk_of_everything_and_wrong_labels_are_wrong_usage(duebell: Operator) -> None:
    for words, error in (
        (("bulk", "cancel", "--yes"), "say which jobs: --label, --topic or --id-prefix"),
        (("bulk", "cancel", "--label", "team", "--yes"), "--label: 'team' is not of the form key=value"),
        (("list", "--label", "te am=x"), "--label: the key 'te am' must have"),
        (("schedule", "tea", "--in", "1h", "--label", "team="), "--label: the value of 'team'"),
    ):
        ended = await duebell(*words)
        assert ended.status == 2, words
        assert error in ended.err
