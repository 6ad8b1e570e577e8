"""What holds for every command that the parser returns, from any bytes."""

import json
from itertools import pairwise
from typing import assert_never

import msgspec
import orjson

from consumer.commands.parse import Bulk, Cancel, Command, Pause, Query, Refused, Resume, Trigger
from consumer.commands.schedule import Schedule, list_upcoming
from delivery.http.request import host_of
from shared.contract.fields import FIRST_YEAR, LAST_YEAR
from shared.recurrence import RuleSpec


def check_command(command: Command, body: bytes) -> None:
    match command:
        case Refused(errors, job_id, _):
            assert 1 <= len(errors) <= 10
            assert all(0 < len(error) <= 300 and ":" in error for error in errors), errors
            assert job_id is None or len(job_id) <= 200
            orjson.dumps(errors)  # they go out in a reply
        case Cancel() | Pause() | Resume():
            _check_id(command.id)
        case Query():
            _check_id(command.id)
            assert 0 <= command.history <= 50
            assert 0 <= command.upcoming <= 20
        case Trigger():
            _check_id(command.id)
            _check_id(command.trigger_id)
            _check_payload(command.payload, body)
        case Bulk():
            _check_id(command.id)
            assert command.labels or command.topic or command.id_prefix
        case Schedule():
            _check_schedule(command, body)
        case _:
            assert_never(command)


def _check_schedule(schedule: Schedule, body: bytes) -> None:
    _check_id(schedule.id)
    assert 0 <= schedule.revision < 2**63
    assert FIRST_YEAR <= schedule.next_run_at.year <= LAST_YEAR
    _check_payload(schedule.payload, body)
    if schedule.webhook is not None:
        host_of(json.loads(schedule.webhook)["url"])  # what may be scheduled can be called
    if schedule.rule is not None:
        assert RuleSpec.from_json(schedule.rule.to_json()) == schedule.rule
    assert all(earlier < later for earlier, later in pairwise(list_upcoming(schedule)))


def _check_payload(payload: str | None, body: bytes) -> None:
    if payload is not None:
        assert payload.encode() in body, "carried byte for byte"
        orjson.loads(payload)
        msgspec.json.decode(payload)


def _check_id(job_id: str) -> None:
    assert 1 <= len(job_id) <= 200
    assert "\0" not in job_id
    job_id.encode()
