"""Commands that must be refused, each with the field that the reason must name. Used by the parser's unit tests and,
through the real consumer, by the integration tests.
"""

import json
from dataclasses import dataclass
from typing import Any

from tests.support.builders import a_request, a_rule_request


@dataclass(frozen=True, slots=True)
class BadCommand:
    name: str
    field: str
    body: bytes
    key: str = "schedule.request"
    type: str | None = None


def _bad(name: str, field: str, content: Any, **options: Any) -> BadCommand:
    return BadCommand(name, field, content if isinstance(content, bytes) else json.dumps(content).encode(), **options)


def _without(field: str) -> dict[str, Any]:
    return {name: value for name, value in a_request().items() if name != field}


BAD_COMMANDS = [
    _bad("not JSON", "body", b"ring me at nine"),
    _bad("empty", "body", b""),
    _bad("cut short", "body", b'{"id": "x", "at"'),
    _bad("a byte order mark", "body", b"\xef\xbb\xbf{}"),
    _bad("a list", "body", [a_request()]),
    _bad("a text", "body", "x"),
    _bad("null", "body", None),
    _bad("invalid UTF-8", "body", b'{"id": "\xff\xfe", "at": "2030-06-01T12:00:00Z"}'),
    _bad("unknown type", "type", a_request(), type="ScheduleEverything"),
    _bad("unknown routing key", "type", a_request(), key="schedule.everything"),
    _bad("missing id", "id", _without("id")),
    _bad("a number as id", "id", a_request(id=5)),
    _bad("empty id", "id", a_request(id="")),
    _bad("id too long", "id", a_request(id="x" * 201)),
    _bad("id far too long", "id", a_request(id="x" * 20_000)),
    _bad("NUL in id", "id", a_request(id="a\0b")),
    _bad("lone surrogate in id", "id", b'{"id": "\\ud800", "at": "2030-06-01T12:00:00Z"}'),
    _bad("neither at nor a rule", "at", {"id": "x"}),
    _bad("both at and rrule", "at", a_request(rrule="FREQ=DAILY")),
    _bad("unknown field", "colour", a_request(colour="red")),
    _bad("at is a number", "at", a_request(at=1_893_456_000)),
    _bad("at is a number in a text", "at", a_request(at="1893456000")),
    _bad("at is a date", "at", a_request(at="2030-06-01")),
    _bad("at is no date", "at", a_request(at="2030-02-30T12:00:00Z")),
    _bad("at in the year 0000", "at", a_request(at="0000-01-01T00:00:00Z")),
    _bad("at in the year 1899", "at", a_request(at="1899-12-31T00:00:00Z")),
    _bad("at in the year 9999", "at", a_request(at="9999-12-31T23:59:59-14:00")),
    _bad("at in the year 20000", "at", a_request(at="20000-01-01T00:00:00Z")),
    _bad("at in the year 2200 by UTC", "at", a_request(at="2199-12-31T23:00:00-05:00")),
    _bad("at in the year 1899 by UTC", "at", a_request(at="1900-01-01T00:00:00+05:00")),
    _bad("local at in the year 2200 by UTC", "at", a_request(at="2199-12-31T23:00:00", timezone="America/New_York")),
    _bad("infinity as at", "at", a_request(at="infinity")),
    _bad("local at without a time zone", "timezone", a_request(at="2030-06-01T12:00:00")),
    _bad("local start_at without a time zone", "timezone", a_rule_request(start_at="2030-06-01T12:00:00")),
    _bad("unknown time zone", "timezone", a_request(timezone="Mars/Olympus_Mons")),
    _bad("a path as time zone", "timezone", a_rule_request(timezone="../../etc/passwd")),
    _bad("a directory as time zone", "timezone", a_rule_request(timezone="Europe")),
    _bad("NUL in time zone", "timezone", a_rule_request(timezone="UTC\0")),
    _bad("start_at beside at", "start_at", a_request(start_at="2030-06-01T12:00:00Z")),
    _bad("rrule is not a rule", "rrule", a_rule_request(rrule="every day")),
    _bad("rrule without FREQ", "rrule", a_rule_request(rrule="COUNT=3")),
    _bad("BYMONTHDAY=32", "rrule", a_rule_request(rrule="FREQ=MONTHLY;BYMONTHDAY=32")),
    _bad("INTERVAL=0", "rrule", a_rule_request(rrule="FREQ=DAILY;INTERVAL=0")),
    _bad("a rule that never matches", "rrule", a_rule_request(rrule="FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30")),
    _bad("a rule with no occurrence", "rrule", a_rule_request(rrule="FREQ=DAILY;UNTIL=20200101T000000Z")),
    _bad("NUL in rrule", "rrule", a_rule_request(rrule="FREQ=DAILY\0")),
    _bad("rrule of 100 kB", "rrule", a_rule_request(rrule="FREQ=DAILY;BYHOUR=" + ",".join(["1"] * 30_000))),
    _bad("a bad cron", "cron", {"id": "x", "cron": "61 * * * *"}),
    _bad("every zero seconds", "every_seconds", {"id": "x", "every_seconds": 0}),
    _bad("NaN in payload", "payload", b'{"id": "x", "at": "2030-06-01T12:00:00Z", "payload": NaN}'),
    _bad("Infinity in payload", "payload", b'{"id": "x", "at": "2030-06-01T12:00:00Z", "payload": [-Infinity]}'),
    _bad("1e999 in payload", "payload", b'{"id": "x", "at": "2030-06-01T12:00:00Z", "payload": 1e999}'),
    _bad("lone surrogate in payload", "payload", b'{"id": "x", "at": "2030-06-01T12:00:00Z", "payload": "\\udc00"}'),
    _bad("payload over the limit", "payload", a_request(payload="x" * (256 * 1024 - 1))),
    _bad("payload far over the limit", "payload", a_request(payload="x" * 2_000_000)),
    _bad(
        "payload nested too deep",
        "payload",
        f'{{"id": "x", "at": "2030-06-01T12:00:00Z", "payload": {"[" * 65 + "]" * 65}}}'.encode(),
    ),
    _bad("payload nested far too deep", "body", f'{{"id": "x", "payload": {"[" * 50_000 + "]" * 50_000}}}'.encode()),
    _bad("topic with a space", "topic", a_request(topic="my topic")),
    _bad("topic with an empty word", "topic", a_request(topic="a..b")),
    _bad("topic too long", "topic", a_request(topic="x" * 129)),
    _bad("topic with a line break", "topic", a_request(topic="abc\n")),
    _bad("revision is a text", "revision", a_request(revision="2")),
    _bad("revision is half", "revision", a_request(revision=1.5)),
    _bad("revision is true", "revision", a_request(revision=True)),
    _bad("revision beyond 64 bits", "revision", a_request(revision=2**63)),
    _bad("unknown misfire policy", "misfire", a_request(misfire="maybe")),
    _bad("negative grace", "misfire_grace_seconds", a_request(misfire_grace_seconds=-1)),
    _bad("webhook is a text", "webhook", a_request(webhook="http://example.com")),
    _bad("webhook without url", "webhook.url", a_request(webhook={})),
    _bad("webhook to a file", "webhook.url", a_request(webhook={"url": "file:///etc/passwd"})),
    _bad("webhook with a password", "webhook.url", a_request(webhook={"url": "http://a:b@example.com/"})),
    _bad("webhook to port 99999", "webhook.url", a_request(webhook={"url": "http://example.com:99999/"})),
    _bad(
        "line break in a header",
        "webhook.headers",
        a_request(webhook={"url": "http://example.com/", "headers": {"X-A": "b\r\nC: d"}}),
    ),
    _bad("Host header", "webhook.headers", a_request(webhook={"url": "http://example.com/", "headers": {"host": "b"}})),
    _bad("unknown webhook field", "webhook.verb", a_request(webhook={"url": "http://example.com/", "verb": "GET"})),
    _bad("cancel without id", "id", {}, key="schedule.cancel"),
    _bad("cancel with a schedule", "at", a_request(), key="schedule.cancel"),
    _bad("cancel with NUL", "id", {"id": "\0"}, type="ScheduleCancel"),
    _bad("pause without id", "id", {}, key="schedule.pause"),
    _bad("pause with a reason", "reason", {"id": "x", "reason": "holidays"}, key="schedule.pause"),
    _bad("resume without id", "id", {"id": None}, key="schedule.resume"),
    _bad("trigger without trigger_id", "trigger_id", {"id": "x"}, key="schedule.trigger"),
    _bad("trigger_id is empty", "trigger_id", {"id": "x", "trigger_id": ""}, key="schedule.trigger"),
    _bad("trigger_id is long", "trigger_id", {"id": "x", "trigger_id": "y" * 201}, key="schedule.trigger"),
    _bad("trigger_id with NUL", "trigger_id", {"id": "x", "trigger_id": "\0"}, key="schedule.trigger"),
    _bad("trigger with a topic", "topic", {"id": "x", "trigger_id": "y", "topic": "z"}, key="schedule.trigger"),
]
