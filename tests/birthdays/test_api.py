"""The HTTP API: wrong things are refused with the field named, and everything is as its OpenAPI document says."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.birthdays.application import Home, birthdays, born
from tests.birthdays.users import Clock, a_user
from tests.support.eventually import eventually
from tests.support.services import ROOT, service_process

UNKNOWN_USER = "00000000-0000-4000-8000-000000000000"
TOMORROW = (datetime.now(UTC) + timedelta(days=2)).date().isoformat()
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("firstName", {"firstName": ""}),
    ("firstName", {"firstName": "x" * 101}),
    ("firstName", {"firstName": 7}),
    ("firstName", {"firstName": None}),
    ("lastName", {"lastName": "\x00"}),
    ("lastName", {"lastName": ["Lovelace"]}),
    ("dateOfBirth", {"dateOfBirth": "1990-02-30"}),
    ("dateOfBirth", {"dateOfBirth": "1990-2-3"}),
    ("dateOfBirth", {"dateOfBirth": "1990-02-03T00:00:00"}),
    ("dateOfBirth", {"dateOfBirth": 7000}),
    ("dateOfBirth", {"dateOfBirth": TOMORROW}),
    ("timezone", {"timezone": "Mars/Olympus"}),
    ("timezone", {"timezone": "europe/berlin"}),
    ("timezone", {"timezone": "../../etc/passwd"}),
    ("otherDates.REMINDER", {"otherDates": {"REMINDER": "2020-01-01"}}),
    ("otherDates.BIRTHDAY", {"otherDates": {"BIRTHDAY": "2020-01-01"}}),
    ("otherDates.ANNIVERSARY", {"otherDates": {"ANNIVERSARY": "soon"}}),
    ("otherDates.ANNIVERSARY", {"otherDates": {"ANNIVERSARY": TOMORROW}}),
    ("nickname", {"nickname": "Countess"}),
]


async def test_what_is_wrong_is_refused_with_the_field_named_and_nothing_is_stored(home: Home) -> None:
    async with birthdays(home, ["api"]) as client:
        user = await born(client, a_user())
        for field, wrong in WRONG:
            for answer in (
                await client.post("/user", json=a_user(**wrong)),
                await client.put(f"/user/{user}", json=wrong),
            ):
                assert answer.status_code == 400, (wrong, answer.text)
                assert [problem["field"] for problem in answer.json()["errors"]] == [field], (wrong, answer.text)
        for field in a_user():
            missing = {name: value for name, value in a_user().items() if name != field}
            answer = await client.post("/user", json=missing)
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field)
        for body in (b"", b"{", b"[]", b"\xff"):
            answer = await client.post("/user", content=body, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "body"), body
        assert (await home.count("users"), await home.count("outbox")) == (1, 1)


async def test_an_unknown_user_is_not_found(home: Home) -> None:
    async with birthdays(home, ["api"]) as client:
        for answer in (
            await client.get(f"/user/{UNKNOWN_USER}"),
            await client.put(f"/user/{UNKNOWN_USER}", json={"lastName": "King"}),
            await client.delete(f"/user/{UNKNOWN_USER}"),
            await client.get(f"/user/{UNKNOWN_USER}/greetings"),
        ):
            assert answer.status_code == 404
            assert answer.json()["errors"][0]["field"] == "id"
        assert (await client.get("/user/not-an-id")).status_code == 400


async def test_today_is_what_the_calendar_shows_where_the_user_lives(home: Home) -> None:
    """When the first of March has begun in Tokyo, it has not in New York."""
    async with birthdays(home, ["api"], clock=Clock(datetime(2026, 2, 28, 20, tzinfo=UTC))) as client:
        tokyo = a_user(timezone="Asia/Tokyo", dateOfBirth="2026-03-01")
        new_york = a_user(timezone="America/New_York", dateOfBirth="2026-03-01")
        assert (await client.post("/user", json=tokyo)).status_code == 201
        assert (await client.post("/user", json=new_york)).status_code == 400


async def test_the_page_and_its_document_are_there(home: Home) -> None:
    async with birthdays(home, ["api", "receiver"]) as client:
        assert "swagger" in (await client.get("/docs")).text
        document = (await client.get("/openapi.json")).json()
        assert document["paths"].keys() == {"/user", "/user/{id}", "/user/{id}/greetings", "/verdicts"}
        for operations in document["paths"].values():
            for operation in operations.values():
                assert "422" not in operation["responses"]
        assert {"201", "400"} == document["paths"]["/user"]["post"]["responses"].keys()


async def test_everything_is_as_the_openapi_document_says(home: Home, tmp_path: Path) -> None:
    settings = home.settings()
    environment = {**home.environment, "HTTP_PORT": str(settings.http_port)}
    with service_process("examples.birthdays", environment, tmp_path) as process:

        async def ready() -> bool:
            assert process.is_running, process.log.read_text()
            return bool(process.said("ready"))

        await eventually(ready)
        outcome = subprocess.run(  # noqa: ASYNC221 - the application is another process
            [
                *(Path(sys.executable).with_name("schemathesis"), "run"),
                f"http://127.0.0.1:{settings.http_port}/openapi.json",
                *("--checks", "all", "--max-examples", "25", "--phases", "examples,coverage,fuzzing"),
                *("--generation-deterministic", "--request-timeout", "20"),
                *("--no-color", "--warnings", "off"),
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.birthdays.schemathesis_hooks"},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr
        assert process.is_running
        assert not [line for line in process.lines() if line["event"] == "database_away"], process.log.read_text()
