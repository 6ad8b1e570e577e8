"""Any bytes are read as a consistent command, or refused with reasons; the parser raises nothing. The atheris targets
under tests/fuzz go further.
"""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from consumer.commands.parse import RawCommand, Refused, read_command
from consumer.commands.schedule import Schedule
from shared.contract.messages import ScheduleRequest
from tests.hostile.corpus import load
from tests.hostile.invariants import check_command
from tests.support.builders import NOON
from tests.unit.recurrence.rules_at_random import repeatable

LIMIT = 256 * 1024
BODIES = [case.body for case in load() if len(case.body) < 2_000]

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from([None, "", "ScheduleRequest", "ScheduleCancel", "ScheduleOther"])
KEYS = st.sampled_from(
    ["schedule.request", "schedule.cancel", "schedule.trigger", "schedule.pause", "schedule.query", "other"]
)


@st.composite
def spoiled_bodies(draw: st.DrawFn) -> bytes:
    """Draw a body of the corpus, cut a piece out, and put another in, possibly of another body."""
    body, other = draw(st.sampled_from(BODIES)), draw(st.sampled_from(BODIES))
    begin, end = sorted((draw(st.integers(0, len(body))), draw(st.integers(0, len(body)))))
    start = draw(st.integers(0, len(other)))
    piece = draw(st.one_of(st.binary(max_size=4), st.just(other[start : start + 20])))
    return body[:begin] + piece + body[min(end, begin + 8) :]


@st.composite
def odd_requests(draw: st.DrawFn) -> bytes:
    """Draw a command with the right fields and any values."""
    names = draw(st.lists(st.sampled_from(sorted(ScheduleRequest.model_fields)), max_size=5))
    content = {"id": "x", "at": "2030-06-01T12:00:00Z", **{name: draw(JSON_VALUES) for name in names}}
    return json.dumps(content).encode()


@repeatable
@given(st.one_of(st.binary(max_size=300), spoiled_bodies(), odd_requests()), TYPES, KEYS)
@example(b"", None, "schedule.request")
def test_any_bytes_are_a_command_or_refused(body: bytes, kind: str | None, key: str) -> None:
    check_command(read_command(RawCommand(body, kind, key), NOON, LIMIT), body)


@repeatable
@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=200),
    JSON_VALUES,
    st.integers(0, 2**63 - 1),
    st.datetimes(min_value=NOON.replace(tzinfo=None, year=1901), max_value=NOON.replace(tzinfo=None, year=2198)),
)
def test_a_valid_request_is_read_as_it_was_written(job_id: str, payload: Any, revision: int, at: Any) -> None:
    written = json.dumps(payload)
    body = json.dumps({"id": job_id, "at": at.isoformat("T", "microseconds") + "Z", "revision": revision})
    command = read_command(
        RawCommand(body[:-1].encode() + b', "payload": ' + written.encode() + b"}", None, "schedule.request"),
        NOON,
        LIMIT,
    )
    if isinstance(command, Refused):
        assert command.errors[0].startswith("payload:"), command.errors  # a number beyond doubles
        return
    assert isinstance(command, Schedule)
    assert (command.id, command.revision, command.payload) == (job_id, revision, written)
    assert command.next_run_at.replace(tzinfo=None) == at
