"""What the client tells a developer before anything is sent."""

import json
from pathlib import Path
from typing import Any

from tests.support.client_program import Installed

SCRIPTS = Path(__file__).parent / "scripts"
LATER = "2030-01-01T00:00:00Z"
LOCAL = "2030-01-01T09:00:00"
NO_ZONE = "is not an IANA time zone; it is UTC, or a place such as Europe/Berlin"

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"timezone": "Berlin"}, "timezone: 'Berlin' is not an IANA time zone; did you mean Europe/Berlin?"),
    ({"timezone": "europe/berlin"}, "timezone: 'europe/berlin' is not an IANA time zone; did you mean Europe/Berlin?"),
    ({"timezone": 5}, "timezone: must be a name such as Europe/Berlin, or a ZoneInfo, not int"),
    ({"timezone": "Europe/Berln"}, "timezone: 'Europe/Berln' is not an IANA time zone; did you mean Europe/Berlin?"),
    ({"timezone": "New York"}, "timezone: 'New York' is not an IANA time zone; did you mean America/New_York?"),
    ({"timezone": "Mars/Olympus"}, f"timezone: 'Mars/Olympus' {NO_ZONE}"),
    ({"timezone": "CEST"}, f"timezone: 'CEST' {NO_ZONE}"),
    ({"timezone": "UTC+2"}, f"timezone: 'UTC+2' {NO_ZONE}"),
    ({"timezone": "../etc/passwd"}, f"timezone: '../etc/passwd' {NO_ZONE}"),
    ({"timezone": ""}, f"timezone: '' {NO_ZONE}"),
    ({"at": LOCAL}, "timezone: is needed, because at has no offset (a datetime: no tzinfo)"),
    ({"at": f"$datetime {LOCAL}"}, "timezone: is needed, because at has no offset (a datetime: no tzinfo)"),
    (
        {"at": None, "cron": "@daily", "start_at": LOCAL},
        "timezone: is needed, because start_at has no offset (a datetime: no tzinfo)",
    ),
    (
        {"at": "2030-01-31T09:00"},
        "at: the seconds are missing: write it as in 2030-01-31T09:00:00Z, or 2030-01-31T09:00:00 with a timezone",
    ),
    (
        {"at": "2030-01-31"},
        "at: the time of day is missing: write it as in 2030-01-31T09:00:00Z, or 2030-01-31T09:00:00 with a timezone",
    ),
    (
        {"at": "tomorrow"},
        "at: 'tomorrow' is not a date and time such as 2030-01-31T09:00:00Z, or 2030-01-31T09:00:00 with a timezone",
    ),
    (
        {"at": "2030-02-30T09:00:00Z"},
        "at: is not a real date and time: a month, day, hour, minute, second or offset is out of range",
    ),
    (
        {"at": "2030-01-31T24:00:00Z"},
        "at: is not a real date and time: hours are 00 to 23, midnight is 00:00 of the next day",
    ),
    ({"at": 5}, "at: must be a datetime or text, not int"),
    ({"at": None, "cron": "0 9 * * * *"}, "cron: six fields given, five are needed: seconds are not supported"),
    (
        {"at": None, "cron": "9 * *"},
        "cron: three fields given, five are needed: minute, hour, day-of-month, month, day-of-week",
    ),
    ({"at": None}, "exactly one of at, rrule, cron, every_seconds is needed; given: none"),
    ({"cron": "@daily"}, "exactly one of at, rrule, cron, every_seconds is needed; given: at, cron"),
    ({"job_id": 7}, "id: must be text; use str(…)"),
    ({"job_id": ""}, "id: must not be empty"),
    ({"job_id": "x" * 201}, "id: must have 200 characters at most"),
    ({"job_id": "a\0b"}, "id: must not contain NUL"),
    ({"pyload": 1}, "pyload: is unknown; did you mean payload?"),
    ({"priority": 1}, "priority: is unknown"),
    ({"reason": 1}, "reason: is unknown"),
    (
        {"topic": "two words"},
        "topic: must be words of A-Z, a-z, 0-9, _ and - joined by dots, such as invoices.reminder",
    ),
    ({"webhook": "ftp://example.com"}, "webhook.url: must start with http:// or https://"),
    ({"webhook": 7}, "webhook: must be a URL or a Webhook, not int"),
    ({"revision": "2"}, "revision: must be a whole number, not str"),
    ({"misfire": "later"}, "misfire: must be 'all', 'latest' or 'skip'"),
]
RIGHT: list[dict[str, Any]] = [
    {"at": f"$datetime {LOCAL}+02:00"},
    {"at": f"$datetime {LOCAL}", "timezone": "Europe/Kyiv"},
    {"at": f"$datetime {LOCAL}", "timezone": "$zone Europe/Kyiv"},
    {"at": "2030-01-31 09:00:00.5-03:30"},
    {"at": None, "cron": "  0 9 * * 1-5 ", "timezone": "Etc/GMT+1"},
    {"at": None, "cron": "@daily", "start_at": LATER},
    {"timezone": "UTC", "topic": "a-b.c_d", "misfire": "skip", "payload": None, "webhook": None},
]


async def made(python: Path, directory: Path, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    arguments = json.dumps([{"at": LATER, **fields} for fields in requests])
    return await Installed(python, {}, directory).run(SCRIPTS / "making.py", arguments)


async def test_a_mistake_is_told_in_words_that_name_the_field(python: Path, tmp_path: Path) -> None:
    reports = await made(python, tmp_path, [fields for fields, _ in WRONG])
    assert [report.get("errors") for report in reports] == [[reason] for _, reason in WRONG]


async def test_every_mistake_is_told_at_once(python: Path, tmp_path: Path) -> None:
    [report] = await made(python, tmp_path, [{"timezone": "Berlin", "topic": "", "every_seconds": 0}])
    assert [error.partition(":")[0] for error in report["errors"]] == ["every_seconds", "timezone", "topic"]


async def test_what_is_right_is_taken_as_it_was_given(python: Path, tmp_path: Path) -> None:
    reports = await made(python, tmp_path, RIGHT)
    assert [set(report) for report in reports] == [{"made"}] * len(RIGHT)
    assert reports[0]["made"]["at"] == f"{LOCAL}+02:00"


async def test_a_request_without_a_revision_gets_a_higher_one_than_the_one_before(python: Path, tmp_path: Path) -> None:
    reports = await made(python, tmp_path, [{}] * 50 + [{"revision": None}, {"revision": 3}])
    revisions = [report["made"]["revision"] for report in reports]
    assert revisions[:51] == sorted(set(revisions[:51]))
    assert revisions[51] == 3
