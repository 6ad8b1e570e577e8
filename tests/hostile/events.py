"""Hostile ScheduleDue events, for the delivery service's door. Only a producer may publish there, so this is about
damage and mistakes more than malice; the promise is the same: stored, or parked with a reason that names the field.
"""

import json
from collections.abc import Iterator
from typing import Any

from tests.hostile.case import Case, judged, parked, stored
from tests.hostile.corpus import DIRECTORY, from_line, to_line
from tests.hostile.families.framing import ENCODINGS, NOT_UTF8
from tests.hostile.families.headers import NOT_NAMES, NOT_VALUES, RESERVED
from tests.hostile.families.kinds import NOT_TEXT, TOPICS
from tests.hostile.families.message_properties import HEADERS, NOT_HEADERS
from tests.hostile.urls import refused_urls
from tests.hostile.wire import entry, properties, table, timestamp, well_behaved
from tests.support.raw_publishing import short

KEY = "due.webhook.hooks"
TYPE = "ScheduleDue"
URL = "https://receiver.invalid/hook"
NOT_INSTANTS: list[Any] = [
    "", " ", "now", "2030-06-01", "2030-06-01T12:00:00", "2030-02-30T12:00:00Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "1899-12-31T23:59:59Z", "2200-01-01T00:00:00Z", "1900-01-01T00:00:00+14:00", "99999-01-01T00:00:00Z", "infinity",
    "NaN", None, True,
    [], {}, 10**30, -(10**30), 1e300, "1e300",
]  # fmt: skip
NOT_SEQUENCES: list[Any] = [0, -1, 2**63, 10**40, 1.5, "x", "", "1.5", None, [], {}, 1e300]
NOT_KEYS_OF_ONE = ["", " ", "a b", "a\r\nX-Evil: 1", "é", "x" * 201, "\0", "a\tb", "\x7f"]


def cases() -> Iterator[Case]:
    yield from _bodies()
    yield from _fields()
    yield from _webhooks()
    yield from _properties()


def generated() -> str:
    return "".join(f"{to_line(case)}\n" for case in cases())


def committed() -> str:
    return (DIRECTORY / "events.jsonl").read_text()


def load() -> list[Case]:
    return [from_line(line) for line in committed().splitlines()]


def _due(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "topic": "hooks",
        "sequence": 1,
        "due_at": "2026-07-10T09:00:00Z",
        "fired_at": "2026-07-10T09:00:00.005Z",
        "payload": {"n": 1},
        "idempotency_key": f"event-{abs(hash_of(name)):032x}",
        "webhook": {"url": URL},
        **fields,
    }


def hash_of(name: str) -> int:
    """The same in every run, unlike Python's own."""
    return int.from_bytes(name.encode(), "big") % (2**127 - 1)


def _judged(name: str, field: str | None, **fields: Any) -> Case:
    return judged(name, field, _due(name, **fields), key=KEY, type=TYPE)


def _bodies() -> Iterator[Case]:
    for number, text in enumerate(
        ("", "{", "}", "[]", "null", '"x"', "0", "[[]]", "NaN", '{"id": NaN}', "{}{}", "x", "\0")
    ):
        yield parked(f"event body {text!r}, {number}", "body", text.encode(), key=KEY, type=TYPE)
    for encoding in ENCODINGS:
        yield parked(f"event in {encoding}", "body", '{"id": "x"}'.encode(encoding), key=KEY, type=TYPE)
    for what, bad in NOT_UTF8.items():
        yield parked(f"event with {what}", "body", b'{"id": "' + bad + b'"}', key=KEY, type=TYPE)
    yield parked("an event of nothing", "id", b"{}", key=KEY, type=TYPE)
    for depth in (5_000, 50_000):
        yield parked(f"an event {depth} lists deep", "body", b"[" * depth + b"]" * depth, key=KEY, type=TYPE)


def _fields() -> Iterator[Case]:
    for field in ("id", "topic", "sequence", "due_at", "fired_at", "payload", "idempotency_key", "webhook"):
        content = _due(f"an event without {field}")
        del content[field]
        yield parked(f"an event without {field}", field, json.dumps(content).encode(), key=KEY, type=TYPE)
    for field in ("id", "topic", "idempotency_key"):
        for what, value in NOT_TEXT.items():
            yield _judged(f"event {field} is {what}", field, **{field: value})
    for number, topic in enumerate(TOPICS):
        yield _judged(f"event topic {topic[:20]!r}, {number}", "topic", topic=topic)
    for field in ("due_at", "fired_at"):
        for number, value in enumerate(NOT_INSTANTS):
            yield _judged(f"event {field} {value!r}, {number}", field, **{field: value})
    for number, value in enumerate(NOT_SEQUENCES):
        yield _judged(f"event sequence {str(value)[:30]}, {number}", "sequence", sequence=value)
    for number, key in enumerate(NOT_KEYS_OF_ONE):
        yield _judged(f"event key {key[:20]!r}, {number}", "idempotency_key", idempotency_key=key)
    yield from _ids_and_payloads()


def _ids_and_payloads() -> Iterator[Case]:
    for what, text in {"empty": "", "of 201": "x" * 201, "with NUL": "a\0b", "of 20,000": "x" * 20_000}.items():
        yield _judged(f"event id {what}", "id", id=text)
    yield _judged("an event from tomorrow", None, colour="blue", version=9)
    yield _judged("an event with an odd id", None, id="\r\n\u202e'; --")
    payloads: dict[str, Any] = {
        "null": None, "a text": "x\0", "nothing": {}, "a number": 10**30, "half a megabyte": "x" * 500_000,
    }  # fmt: skip
    for what, payload in payloads.items():
        yield _judged(f"an event whose payload is {what}", None, payload=payload)


def _webhooks() -> Iterator[Case]:
    not_webhooks: dict[str, Any] = {"a text": "x", "null": None, "a list": [], "a number": 5}
    for what, other in not_webhooks.items():
        yield _judged(f"event webhook is {what}", "webhook", webhook=other)
    yield _judged("event webhook of nothing", "webhook.url", webhook={})
    for number, url in enumerate(refused_urls(8080)[::4]):
        yield _judged(f"event url {url[:40]!r}, {number}", "webhook.url", webhook={"url": url})
    for name in [*RESERVED[::3], *NOT_NAMES[::3]]:
        yield _judged(f"event header {name!r}", "webhook.headers", webhook={"url": URL, "headers": {name: "x"}})
    for number, value in enumerate(NOT_VALUES[:-1:3]):
        yield _judged(
            f"event header value {value!r}, {number}", "webhook.headers", webhook={"url": URL, "headers": {"a": value}}
        )
    parts: dict[str, Any] = {"timeout_seconds": 0, "max_retries": 21, "secret": "a b", "headers": "x"}
    for part, wrong in parts.items():
        yield _judged(f"event webhook.{part} is {wrong!r}", f"webhook.{part}", webhook={"url": URL, part: wrong})


def _properties() -> Iterator[Case]:
    for number, name in enumerate(("ScheduleRequest", "scheduledue", "ScheduleDue ", "x" * 255)):
        yield parked(f"an event of type {name[:20]!r}, {number}", "type", _due(str(number)), key=KEY, type=name)
    for name in ("content_type", "message_id", "type", "app_id", "correlation_id"):
        yield parked(
            f"an event whose {name} is not UTF-8",
            name,
            _due(name),
            key=KEY,
            properties=properties(**{name: short(b"\xff")}),
        )
    yield parked(
        "an event with a timestamp of 2**63",
        "timestamp",
        _due("ts"),
        key=KEY,
        properties=well_behaved(timestamp=timestamp(2**63)),
    )
    for what, value in NOT_HEADERS.items():
        yield parked(
            f"event headers: {what}", "headers", _due(what), key=KEY, properties=well_behaved(headers=table(value))
        )
    for what, value in HEADERS.items():
        name = f"an event with a header that is {what}"
        yield stored(name, _due(name), key=KEY, properties=well_behaved(headers=table(entry(b"a", value))))
        name = f"no event, and a header that is {what}"
        yield parked(name, "body", b"{", key=KEY, properties=well_behaved(headers=table(entry(b"a", value))))
    name = "an event under a key that is not UTF-8"
    yield stored(name, _due(name), key="due.webhook.\udcff", type=TYPE)
