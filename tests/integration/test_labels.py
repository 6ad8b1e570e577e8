"""Labels are stored with their job, and go with its lives and its reschedules."""

from typing import Any

from tests.support.application import Application
from tests.support.builders import a_request
from tests.support.services import running_consumer
from tests.support.stores import Site


async def test_a_job_has_the_labels_of_its_newest_request(site: Site, app: Application, database: Any) -> None:
    async def stored() -> list[str]:
        return [row["label"] for row in await database.fetch("select label from job_labels order by label")]

    async with running_consumer(site):
        await app.request(a_request(labels={"team": "billing", "env": "test"}))
        assert (await app.query("job-1"))["labels"] == {"env": "test", "team": "billing"}
        assert await stored() == ["env=test", "team=billing"]
        same = await app.request(a_request(labels={"env": "test", "team": "billing"}))
        assert (same["outcome"], same["errors"]) == ("duplicate", [])
        other = await app.request(a_request(labels={"team": "sales"}))
        assert (other["outcome"], other["errors"]) == (
            "duplicate",
            ["revision: 1 is in use with another labels; a higher revision replaces it"],
        )
        refused = await app.request(a_request(id="job-2", labels={"te am": "x"}))
        assert refused["outcome"] == "rejected"
        assert refused["errors"][0].startswith("labels: the key 'te am'")

        await app.request(a_request(labels={"team": "sales"}, revision=2))
        assert await stored() == ["team=sales"]
        await app.cancel("job-1")
        assert await stored() == []
        assert (await app.query("job-1"))["labels"] == {"team": "sales"}
        await app.request(a_request(revision=4))
        told = await app.query("job-1")
        assert told["labels"] is None
        assert [entry["details"] for entry in told["history"] if entry["what"] == "rescheduled"] == [
            {"changed": {"labels": [{"env": "test", "team": "billing"}, {"team": "sales"}]}}
        ]
    assert await stored() == []
