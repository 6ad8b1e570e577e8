"""Tests what stays the same in a ScheduleDue when its occurrence is published again."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from producer.decisions.due_event import due_event
from producer.decisions.plan import DueJob
from shared.contract.fields import idempotency_key
from shared.contract.names import IDEMPOTENCY_HEADER, Names
from tests.support.builders import NOON, a_due_job


def published(job: DueJob, fired_at: datetime) -> tuple[dict[str, Any], object]:
    """Return the body, and the header with the key."""
    event = due_event(job, job.occurrence, 1, fired_at, Names())
    return json.loads(event.body), (event.headers or {})[IDEMPOTENCY_HEADER]


@pytest.mark.parametrize("trigger_id", [None, "by-hand"])
def test_an_occurrence_that_is_published_again_has_the_same_key(trigger_id: str | None) -> None:
    """Another producer publishes it a minute later, after a crash between the publish and the commit."""
    job = a_due_job(topic="tea", trigger_id=trigger_id)
    first, first_header = published(job, NOON)
    second, second_header = published(job, NOON + timedelta(minutes=1))
    assert first["fired_at"] != second["fired_at"]
    key = idempotency_key("job-1", NOON, "tea", trigger_id)
    assert first["idempotency_key"] == second["idempotency_key"] == first_header == second_header == key
