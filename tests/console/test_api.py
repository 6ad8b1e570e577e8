"""The HTTP API: it reads what the pages read, and acts by commands whose verdicts it returns; and it is as its OpenAPI
document says.
"""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from stack.ports import LOOPBACK
from tests.console.running_console import PROGRAM, READER, RunningConsole
from tests.support.eventually import PATIENCE, eventually
from tests.support.services import ROOT

FAR = "2099-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    body: bytes
    headers: http.client.HTTPMessage

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


Api = Callable[..., Answered]


@pytest.fixture
def api(console: RunningConsole) -> Api:
    """Ask the API with the token of a program that may act; `token` and `headers` say otherwise."""

    def ask(
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = PROGRAM,
        headers: dict[str, str] | None = None,
        **parameters: str,
    ) -> Answered:
        connection = http.client.HTTPConnection(LOOPBACK, console.port, timeout=PATIENCE)
        try:
            content = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
            given = {"Content-Type": "application/json"} if body is not None else {}
            given |= {"Authorization": f"Bearer {token}"} if token else {}
            query = f"?{urlencode(parameters)}" if parameters else ""
            connection.request(method, f"/api/v1{path}{query}", content, {**given, **(headers or {})})
            answer = connection.getresponse()
            return Answered(answer.status, answer.read(), answer.headers)
        finally:
            connection.close()

    return ask


def test_a_schedule_goes_from_preview_to_cancel_with_a_verdict_each_time(api: Api, console: RunningConsole) -> None:
    request = {"id": "api/öne two", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin", "labels": {"made": "api"}}
    seen = api("POST", "/preview", request, token=READER).json
    assert (seen["outcome"], seen["rule"], len(seen["upcoming"])) == (
        "accepted", "every weekday at 09:00 Europe/Berlin", 6,
    )  # fmt: skip
    wrong = api("POST", "/preview", {"id": "x", "at": FAR, "cron": "* * * * *"}).json
    assert (wrong["outcome"], len(wrong["errors"])) == ("rejected", 1)

    exact = orjson.dumps({**request, "payload": orjson.Fragment(b'{"amount": 12345678901234567890.10}')})
    made = api("POST", "/schedules", exact)
    assert (made.status, made.json["outcome"], len(made.json["upcoming"])) == (200, "accepted", 3), made.body
    assert api("POST", "/preview", request).json["outcome"] == "rescheduled"
    assert api("POST", "/preview", {**request, "revision": 1}).json["outcome"] == "duplicate"
    assert api("POST", "/schedules", {**request, "revision": 1}).json["outcome"] == "duplicate"

    shown = api("GET", "/schedule", id=request["id"])
    assert b"12345678901234567890.10" in shown.body
    hidden = api("GET", "/schedule", token=READER, id=request["id"]).json
    assert (hidden["payload_is_hidden"], hidden["payload"], len(hidden["upcoming"])) == (True, None, 10)
    [listed] = api("GET", "/schedules", label="made=api").json["schedules"]
    assert (listed["id"], listed["rule"]) == (request["id"], "every weekday at 09:00 Europe/Berlin")

    for command, outcome in (("pause", "paused"), ("resume", "resumed"), ("trigger", "triggered")):
        body = {"id": request["id"], **({"trigger_id": "now"} if command == "trigger" else {"note": "by the API"})}
        assert api("POST", f"/{command}", body).json["outcome"] == outcome
    assert api("POST", "/schedules", request).json["outcome"] == "rescheduled", "without a revision, the next one"
    assert api("POST", "/cancel", {"id": request["id"], "note": "enough"}).json["outcome"] == "cancelled"
    why = api("GET", "/why", id=request["id"]).json
    assert (why["cause"], why["history"][0]["what"], why["history"][0]["operator"]) == (
        "cancelled", "cancelled", "program",
    )  # fmt: skip
    unknown = api("POST", "/cancel", {"id": "api never there"})
    assert (unknown.status, unknown.json["outcome"]) == (404, "unknown")
    late = api("POST", "/pause", {"id": request["id"]})
    assert (late.status, late.json["outcome"], bool(late.json["errors"])) == (422, "rejected", True)


async def test_all_that_match_are_paused_and_deliveries_are_listed(api: Api) -> None:
    for number in range(3):
        body = {"id": f"api-bulk-{number}", "at": FAR, "labels": {"bulk": "api"}}
        assert api("POST", "/schedules", body).json["outcome"] == "accepted"
    wanted = {"id": "api-bulk", "action": "pause", "selector": {"labels": {"bulk": "api"}}}
    assert api("POST", "/bulk", wanted).status in {200, 202}

    async def is_done() -> bool:
        return api("GET", "/bulk", id="api-bulk").json["finished_at"] is not None

    await eventually(is_done)
    done = api("GET", "/bulk", id="api-bulk").json
    assert (done["matched"], done["changed"], done["operator"]) == (3, 3, "program")
    first = api("GET", "/schedules", state="paused", label="bulk=api", limit="2").json
    assert (len(first["schedules"]), first["count"]) == (2, 3)
    rest = api("GET", "/schedules", state="paused", label="bulk=api", limit="2", after=first["next"]).json
    assert {one["id"] for one in [*first["schedules"], *rest["schedules"]]} == {f"api-bulk-{n}" for n in range(3)}

    failed = api("GET", "/deliveries", state="failed").json["deliveries"]
    assert failed
    one = api("GET", "/delivery", id=str(failed[0]["id"])).json
    assert one["job_id"] == failed[0]["job_id"]
    assert one["attempts"][-1]["number"] == 1


@pytest.mark.parametrize(
    ("status", "names", "method", "path", "given"),
    [
        (401, "Authorization", "GET", "/schedules", {"token": None}),
        (401, "Authorization", "GET", "/schedules", {"token": "wrong"}),
        (401, "Authorization", "GET", "/schedules", {"token": None, "headers": {"Authorization": "Basic YTpi"}}),
        (403, "viewer", "POST", "/schedules", {"token": READER, "body": {"id": "x", "at": FAR}}),
        (403, "site", "POST", "/cancel", {"body": {"id": "x"}, "headers": {"Sec-Fetch-Site": "cross-site"}}),
        (415, "Content-Type", "POST", "/cancel", {"body": {"id": "x"}, "headers": {"Content-Type": "text/plain"}}),
        (400, "body", "POST", "/cancel", {"body": b"{"}),
        (400, "body", "POST", "/cancel", {"body": b"[1]"}),
        (400, "body", "POST", "/cancel", {"body": b"[" * 100_000}),
        (413, "body", "POST", "/schedules", {"body": b'{"id": "' + b"x" * 2_000_000 + b'"}'}),
        (422, "at", "POST", "/schedules", {"body": {"id": "x"}}),
        (422, "id", "POST", "/schedules", {"body": {"id": 7, "at": FAR}}),
        (422, "id", "POST", "/schedules", {"body": {"id": "\0", "at": FAR}}),
        (422, "colour", "POST", "/pause", {"body": {"id": "x", "colour": "red"}}),
        (400, "state", "GET", "/schedules", {"state": "sleeping"}),
        (400, "limit", "GET", "/schedules", {"limit": "0"}),
        (400, "timezone", "GET", "/why", {"id": "x", "timezone": "Mars/Olympus"}),
        (400, "id", "GET", "/schedule", {}),
        (404, "id", "GET", "/schedule", {"id": "api nowhere"}),
        (404, "Not found", "GET", "/nowhere", {}),
    ],
)
def test_what_is_wrong_is_said_in_json_and_changes_nothing(  # noqa: PLR0917 - one for each part of the request
    api: Api, status: int, names: str, method: str, path: str, given: dict[str, Any]
) -> None:
    answer = api(method, path, **given)
    assert answer.status == status, answer.body
    assert names in " ".join(answer.json["errors"])


def test_the_api_is_as_its_document_says(console: RunningConsole, tmp_path: Path) -> None:
    outcome = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "run"),
            f"{console.url}/api/v1/openapi.json",
            *("--header", f"Authorization: Bearer {PROGRAM}"),
            *("--checks", "not_a_server_error,status_code_conformance,content_type_conformance"),
            *("--checks", "response_schema_conformance,ignored_auth,unsupported_method"),
            *("--max-examples", "20", "--phases", "examples,coverage,fuzzing"),
            *("--generation-deterministic", "--request-timeout", "30", "--no-color", "--warnings", "off"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE * 4,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert console.process.is_running
    assert not console.process.said("page_failed"), console.process.log.read_text()
    assert json.loads(console.ask("/api/v1/openapi.json").text)["openapi"] == "3.1.0"
