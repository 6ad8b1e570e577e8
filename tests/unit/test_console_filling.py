"""Scheduling again by the console's form: what the schedule had is there, and what is left out is told."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from console.commands import Command, check_command, read
from console.copying import as_command_line
from console.filling import filled_again
from console.foretelling import left_out
from console.pages.new import EMPTY, content_of
from consumer.commands.schedule import Schedule
from shared.contract.messages import REQUEST_TYPE
from shared.reading.jobs import Job
from shared.recurrence import RuleSpec

BERLIN = ZoneInfo("Europe/Berlin")
AT = datetime(2026, 7, 10, 9, tzinfo=UTC)
EVERY = RuleSpec("2026-01-01T00:00:00.5Z", every_seconds=90)
WEBHOOK = {
    "url": "https://example.com/hook?key=1", "headers": {"X-Token": "…"}, "secret": "s", "timeout_seconds": 2.5,
    "max_retries": 0,
}  # fmt: skip
JOB = Job(
    id="invoice-42", status="pending", topic="billing", owner=None, labels={"env": "a, b", "team": "billing"},
    next_run_at=AT, retry_at=None, refusals=0, revision=7, life=1, version=1, sequence=0, last_due_at=None,
    payload='{"n": 12345678901234567890123}', webhook=WEBHOOK, rule=EVERY.to_json(), rule_index=1, misfire="skip",
    misfire_grace_seconds=5, traceparent=None, created_at=AT, updated_at=AT, finished_at=None,
)  # fmt: skip


def sent_again(job: Job, *, sees_payloads: bool = True) -> dict[str, Any]:
    content, problems = content_of({**EMPTY, **filled_again(job, BERLIN, sees_payloads=sees_payloads)})
    assert not problems
    return orjson.loads(orjson.dumps(content))  # type: ignore[no-any-return]


def test_the_form_is_filled_with_the_whole_schedule() -> None:
    assert sent_again(JOB) == {
        "id": "invoice-42", "topic": "billing", "labels": {"env": "a, b", "team": "billing"}, "every_seconds": 90,
        "start_at": "2026-01-01T00:00:00.5Z", "misfire": "skip", "misfire_grace_seconds": 5, "webhook": WEBHOOK,
        "payload": orjson.loads(JOB.payload or ""),
    }  # fmt: skip
    assert filled_again(JOB, BERLIN, sees_payloads=True)["payload"] == JOB.payload, "digit by digit"


@pytest.mark.parametrize(
    "rule",
    [
        RuleSpec("2026-01-01T00:00:00", "Europe/Berlin", cron="0 9 * * *", dst_gap="skip", dst_fold="both"),
        RuleSpec("2026-01-01T00:00:00", "Europe/Berlin", rrule="FREQ=DAILY"),
    ],
)
def test_the_form_is_filled_with_the_whole_rule(rule: RuleSpec) -> None:
    sent = sent_again(replace(JOB, rule=rule.to_json()))
    assert sent.items() >= orjson.loads(rule.to_json()).items()


@pytest.mark.parametrize(
    ("moment", "at"),
    [
        ("2026-07-10T09:00:00Z", "2026-07-10T11:00:00"),
        ("2026-07-10T09:00:00.000001Z", "2026-07-10T11:00:00.000001"),
        ("2026-10-25T00:30:00Z", "2026-10-25T02:30:00+02:00"),
        ("2026-10-25T01:30:00Z", "2026-10-25T02:30:00+01:00"),
        ("2026-03-29T01:00:00Z", "2026-03-29T03:00:00"),
    ],
)
def test_the_form_is_filled_with_the_moment(moment: str, at: str) -> None:
    job = replace(JOB, rule=None, webhook=None, next_run_at=datetime.fromisoformat(moment))
    assert filled_again(job, BERLIN, sees_payloads=True)["at"] == at
    checked = read(Command(REQUEST_TYPE, {**sent_again(job), "timezone": "Europe/Berlin"}), 1000)
    assert isinstance(checked, Schedule)
    assert checked.next_run_at == job.next_run_at


def test_what_was_hidden_is_not_sent_by_mistake() -> None:
    hidden = sent_again(JOB, sees_payloads=False)
    assert "payload" not in hidden
    assert "key=1" not in hidden["webhook"]["url"]
    refused = check_command(Command(REQUEST_TYPE, hidden), 1000)
    assert refused is not None
    assert {error.split(":")[0] for error in refused.errors} == {"webhook.url", "webhook.headers"}


def test_the_preview_tells_what_a_request_leaves_out() -> None:
    assert left_out({"id": "invoice-42"}, JOB) == ["payload", "webhook", "labels", "misfire"]
    assert left_out({"payload": None, "webhook": {}, "labels": {}}, JOB) == ["misfire"]
    assert left_out(sent_again(JOB), JOB) == []
    assert left_out({}, replace(JOB, payload=None, webhook=None, labels=None, misfire="all")) == []
    assert left_out({}, None) == []


def test_labels_of_the_form_are_lines_and_a_wrong_one_is_told() -> None:
    _, problems = content_of({**EMPTY, "id": "a", "at": "2030-01-01T09:00", "labels": "team=a\nteam"})
    assert problems == ["labels: 'team' is not of the form key=value, such as team=billing"]


def test_a_copied_command_line_has_the_labels() -> None:
    assert "--label 'env=a, b'" in as_command_line({"id": "a", "labels": {"env": "a, b"}}, None)
