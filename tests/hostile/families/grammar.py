"""The grammar of JSON: what lenient parsers let through, and what strict ones read in more than one way."""

from collections.abc import Iterator

from tests.hostile.case import Case, a_moment, parked, stored

# One value each, as the whole payload, in a list and under a key.
NOT_VALUES = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e309", "1" * 4000]
NOT_JSON = [
    "-NaN", "+NaN", "+Infinity", "inf", "nan", "-inf",
    "undefined", "None", "True", "TRUE", "nulL", "tru", "truee", "01", "-01", "00", "+1", "-", "--1", "1.", ".5",
    "-.5", "1e", "1e+", "1E-", "1.e5", "0x1F", "0b1", "0o7", "1_000", "1,000", "1d", "1f", "1 2", "'x'", '"x', "x",
    "`x`", '"\\x41"', '"\\u12"', '"\\u12G4"', '"\\U00000041"', '"\\"', '"\\a"', '"\\0"', '"\\\'"', "\u00a01",
    '"a\nb"', '"a\tb"', '"a\0b"', '"a\x1fb"', '"a" "b"', "[1,]", "[,1]", "[,]", "[1,,2]", "[1 2]", "[1;2]", "[1", "1]",
    "[1}", "{1}", "{]", '{"a"}', '{"a":}', '{"a":1,}', '{,"a":1}', '{"a" 1}', '{"a"=1}', '{"a":1 "b":2}', "{a:1}",
    "{'a':1}", "{1:1}", "{null:1}", '{"a"::1}', '{"a":1,,"b":2}', '{"a":1', "// note\n1", "/* note */1", "# note\n1",
    "1//", "<!-- -->1", "\u20281", "\ufeff1", "-0x1", "1e1.5", "1e 5", "1 e5", "- 1", "∞", "½", "١", "１",
]  # fmt: skip
# Odd, and right.
VALUES = [
    "null", "true", "false", "0", "-0", "-0.0", "0.0", "1e5", "1E+5", "1e-5", "1e-400", "0e999",
    "1.7976931348623157e308",
    "123456789012345678901234567890", "-9223372036854775809", "18446744073709551616", "0.1000000000000000055511151231",
    '""', '"\\u0000"', '"\\ud83d\\ude00"', '"\\/"', '"\\b\\f\\n\\r\\t"', '"\x7f"', '"\u2028\u2029"', '"\ufeff"',
    '"\uffff"', '"\\uFFFF"', '"\U0010ffff"', "[]", "{}", "[[[[[]]]]]", '{"":1}', '{"":{"":{"":[]}}}', '{"a":1,"a":2}',
    '{"__proto__":{"x":1}}', '{"constructor":null}', '{"\\u0000":1}', '{"a":[{"b":[{"c":null}]}]}', "[1,\n\t2 ]",
    '"' + "e\u0301" * 50 + '"', "1" * 300, "0." + "1" * 4000, "-" + "9" * 300, '"' + "\\\\" * 1000 + '"',
]  # fmt: skip
HALF_PAIRS = {"high": "\\ud800", "low": "\\udc00", "reversed": "\\ude00\\ud83d", "high and a letter": "\\ud83dx",
              "two highs": "\\ud83d\\ud83d", "at the end": "x\\udbff", "in capitals": "\\uD800"}  # fmt: skip


def cases() -> Iterator[Case]:
    for value in NOT_VALUES:
        yield parked(f"payload {value[:20]}", "payload", _with_payload(value))
        yield parked(f"payload [{value[:20]}]", "payload", _with_payload(f"[{value}]"))
        yield parked(f"payload under a key {value[:20]}", "payload", _with_payload(f'{{"a": {value}}}'))
    for value in NOT_JSON:
        yield parked(f"payload {value!r}", "body", _with_payload(value))
    for value in VALUES:
        yield stored(f"payload as it is {value[:60]!r}", _with_payload(value))
    for what, text in HALF_PAIRS.items():
        yield parked(f"half a surrogate pair, {what}", "payload", _with_payload(f'"{text}"'))
        yield parked(f"half a surrogate pair in a key, {what}", "payload", _with_payload(f'{{"{text}": 1}}'))
    yield from _depth()
    yield from _whole_bodies()
    yield from _keys()


def _with_payload(value: str) -> bytes:
    return b'{"id": "@ID@", "at": "2030-06-01T12:00:00Z", "payload": ' + value.encode() + b"}"


def _nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + "1" + closing * depth


def _depth() -> Iterator[Case]:
    for depth in (1, 30, 62, 63, 64):
        yield stored(f"{depth} lists deep", _with_payload(_nested(depth)))
    for depth in (65, 66, 100, 500, 1000, 1100, 5000, 50_000, 100_000):
        yield parked(f"{depth} lists deep", "payload", _with_payload(_nested(depth)))
    for depth in (10, 63):
        yield stored(f"{depth} objects deep", _with_payload(_nested(depth, '{"a":', "}")))
    for depth in (65, 300, 1000):
        yield parked(f"{depth} objects deep", "payload", _with_payload(_nested(depth, '{"a":', "}")))
    yield parked("20000 objects deep", "payload", _with_payload(_nested(20_000, '{"a":', "}")))
    yield parked("an id 100 lists deep", "id", f'{{"id": {_nested(100)}, "at": "2030-06-01T12:00:00Z"}}'.encode())
    yield parked("an unknown field 100 lists deep", "x", f'{{"id": "x", "x": {_nested(100)}}}'.encode())
    yield parked("lists that never close", "payload", _with_payload("[" * 10_000))
    yield parked("objects that never close", "payload", _with_payload('{"a":' * 10_000))
    yield stored("wide, not deep", _with_payload("[" + "[]," * 5000 + "[]]"))
    yield stored("brackets in a text", _with_payload('"' + "[" * 5000 + '"'))


def _whole_bodies() -> Iterator[Case]:
    for text in ("null", "true", "false", "0", "1", "-1.5", '"x"', '""', "[]", "[{}]", "[[]]", '[{"id": "x"}]'):
        yield parked(f"the body is {text}", "body", text.encode())
    for text in ("NaN", "Infinity", "{", "}", "[", "]", "{]", '"', "{{}}", "{}{}", "{},", ",{}", "()", "<>", "\\"):
        yield parked(f"the body is {text}, which is not JSON", "body", text.encode())
    yield parked("the body is {}", "id", b"{}")


def _keys() -> Iterator[Case]:
    at = b'"at": "2030-06-01T12:00:00Z"'
    yield stored("an escaped key", b'{"\\u0069d": "@ID@", "\\u0061t": "2030-06-01T12:00:00Z"}')
    yield stored("id twice, the last counts", b'{"id": "another id", "id": "@ID@", ' + at + b"}")
    yield stored("at twice, the last counts", b'{"id": "@ID@", "at": "nonsense", ' + at + b"}")
    yield stored("an escaped key and the same unescaped", b'{"i\\u0064": 5, "id": "@ID@", ' + at + b"}")
    yield parked("id twice, the last is wrong", "id", b'{"id": "x", "id": 5, ' + at + b"}")
    yield parked("payload twice, the last is wrong", "payload",
                 b'{"id": "x", ' + at + b', "payload": 1, "payload": NaN}')  # fmt: skip
    for key in ("ID", "Id", "id ", " id", "i d", "id\\u0000", "\\u0456d", "__proto__", "constructor", "toString",
                "$id", "@id", "id[]", "*", "payloads", "Payload", "webhooks", "crons", "due_at", "sequence", "status",
                "next_run_at", "idempotency_key", "version", "misfires", "time_zone", "timeZone", "tz", "At", "url",
                "headers", "secret", "reply_to", "type"):  # fmt: skip
        yield parked(f"the key {key!r}", _read(key), b'{"id": "x", ' + at + f', "{key}": "x"}}'.encode())
    yield parked("an empty key", "''", a_moment(**{"": 1}))
    yield parked("a key of 10,000 letters", "k" * 100, a_moment(**{"k" * 10_000: 1}))
    yield parked("a thousand unknown keys", "k0", a_moment(**{f"k{number}": 1 for number in range(1000)}))
    yield parked("a key with line breaks", "a\r\nb", a_moment(**{"a\r\nb": 1}))
    yield parked("a key with a colon", "a: b", a_moment(**{"a: b": 1}))
    yield parked("half a surrogate pair as a key", "?", b'{"id": "x", ' + at + b', "\\ud800": 1}')
    yield stored("a thousand keys in the payload", a_moment(payload={f"k{number}": number for number in range(1000)}))


def _read(key: str) -> str:
    return key.replace("\\u0000", "\0").replace("\\u0456", "\u0456")
