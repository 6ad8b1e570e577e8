"""Labels: what a command may carry, and how people write them."""

from typing import Any

import orjson
import pytest

from consumer.commands.history import tell_requests
from consumer.commands.merge import StoredJob, answer_requests, content_of
from consumer.commands.parse import RawCommand, Refused, read_command
from consumer.commands.schedule import Schedule
from shared.contract.job_status import JobStatus
from shared.contract.labels import parse_labels, read_labels, write_labels
from shared.contract.messages import Outcome
from tests.support.builders import NOON, a_request, a_schedule


def read(labels: Any) -> Schedule | Refused:
    raw = RawCommand(orjson.dumps(a_request(labels=labels)), None, "schedule.request")
    command = read_command(raw, NOON, 1000)
    assert isinstance(command, Schedule | Refused)
    return command


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ({"team": "billing", "env": "b"}, '{"env":"b","team":"billing"}'),
        ({"a/b.c-d_9": "any = text, ü"}, '{"a/b.c-d_9":"any = text, ü"}'),
        ({str(number): "x" * 100 for number in range(1, 3)}, '{"1":"' + "x" * 100 + '","2":"' + "x" * 100 + '"}'),
        ({}, None),
        (None, None),
    ],
)
def test_labels_are_kept_in_one_order(labels: Any, kept: str | None) -> None:
    command = read(labels)
    assert isinstance(command, Schedule)
    assert command.labels == kept


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ({"te am": "x"}, "labels: the key 'te am' must have"),
        ({"": "x"}, "labels: the key '' must have"),
        ({"a=b": "x"}, "labels: the key 'a=b' must have"),
        ({"k" * 64: "x"}, "labels: the key"),
        ({"team": 5}, "labels.team: must be a string"),
        ({"team": None}, "labels.team: must be a string"),
        ({"team": ""}, "labels.team: must not be empty"),
        ({"team": "x" * 101}, "labels.team: must have at most 100 characters"),
        ({"team": "a\nb"}, "labels.team: must not contain line breaks"),
        ({"team": "a\0b"}, "labels.team: must not contain line breaks"),
        ({str(number): "x" for number in range(17)}, "labels: there are 17, and a job has 16 at most"),
        ("team=billing", "labels: must be an object"),
        (["team"], "labels: must be an object"),
    ],
)
def test_what_is_no_label_is_refused_by_its_name(labels: Any, error: str) -> None:
    command = read(labels)
    assert isinstance(command, Refused)
    assert command.errors[0].startswith(error)


def test_another_set_of_labels_needs_a_higher_revision() -> None:
    request = a_schedule(labels=write_labels({"team": "a"}))
    for stored, named in (('{"team": "a"}', ()), ('{"team": "b"}', ("labels",)), (None, ("labels",))):
        before = content_of(a_schedule(labels=stored))
        job = StoredJob(JobStatus.PENDING, 1, NOON, applied=False, created=False, content=before)
        [answer] = answer_requests([request], {request.id: request}, {request.id: job})
        assert answer.outcome is Outcome.DUPLICATE
        assert [name for name in named if name not in answer.errors[0]] == []
        assert bool(answer.errors) == bool(named)


def test_the_history_tells_which_labels_a_reschedule_changed() -> None:
    request = a_schedule(revision=2, labels='{"env":"x","team":"b"}')
    for before, told in ((None, None), ('{"team": "b", "env": "x"}', False), ('{"team": "a"}', {"team": "a"})):
        was = content_of(a_schedule(labels=before))
        job = StoredJob(JobStatus.PENDING, 2, NOON, applied=True, created=False, before=was)
        answers = answer_requests([request], {request.id: request}, {request.id: job})
        [entry] = tell_requests([request], answers, {request.id: job})
        changed = orjson.loads(entry.details or "{}")["changed"]
        assert changed == ({} if told is False else {"labels": [told, {"env": "x", "team": "b"}]})


def test_people_write_labels_as_key_equals_value() -> None:
    assert parse_labels([]) == {}
    assert parse_labels(["team=a=b", "env=x", "env=x"]) == {"team": "a=b", "env": "x"}
    assert read_labels(write_labels({"b": "1", "a": "2"})) == {"a": "2", "b": "1"}


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["team"], "not of the form key=value"),
        (["te am=x"], "the key 'te am'"),
        (["team="], "must have 1 to 100 characters"),
        (["team=a\tb"], "control characters"),
        (["team=a", "team=b"], "given twice"),
        ([f"k{number}=x" for number in range(17)], "16 at most"),
    ],
)
def test_what_people_write_wrong_is_said(texts: list[str], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        parse_labels(texts)
