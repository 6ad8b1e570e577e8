"""Framing and encoding: what arrives is cut, doubled, padded, or in another format or encoding than JSON in UTF-8."""

import base64
import gzip
import json
import zlib
from collections.abc import Iterator

from tests.hostile.case import ID, Case, a_moment, parked, stored

GOOD = b'{"id": "@ID@", "at": "2030-06-01T12:00:00Z", "payload": {"n": [1, 2.5, "x"]}}'
ENCODINGS = [
    "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig", "cp037", "cp500",
]  # fmt: skip
# Bytes that are not UTF-8, by what is wrong with them.
NOT_UTF8 = {
    "a lone continuation byte": b"\x80",
    "a second lone continuation byte": b"\xbf",
    "two continuation bytes": b"\x80\xbf",
    "a two-byte start alone": b"\xc3",
    "a three-byte start alone": b"\xe2",
    "a four-byte start alone": b"\xf0",
    "a three-byte character cut": b"\xe2\x82",
    "a four-byte character cut": b"\xf0\x9f\x98",
    "an overlong slash of two bytes": b"\xc0\xaf",
    "an overlong slash of three bytes": b"\xe0\x80\xaf",
    "an overlong slash of four bytes": b"\xf0\x80\x80\xaf",
    "an overlong NUL": b"\xc0\x80",
    "an overlong quote": b"\xc0\xa2",
    "a surrogate pair of three bytes each": b"\xed\xa0\xbd\xed\xb8\x80",
    "a character beyond Unicode": b"\xf4\x90\x80\x80",
    "a five-byte character": b"\xf8\x88\x80\x80\x80",
    "a six-byte character": b"\xfc\x84\x80\x80\x80\x80",
    "the byte FE": b"\xfe",
    "the byte FF": b"\xff",
    "Latin-1": "é".encode("latin-1"),
    "Shift JIS": "時計".encode("shift_jis"),
    "GB 18030": "钟".encode("gb18030"),
    "KOI8-R": "часы".encode("koi8_r"),
    "EUC-KR": "시계".encode("euc_kr"),
}
PLACES = {"id": b'{"id": "%s", "at": "2030-06-01T12:00:00Z"}',
          "payload": b'{"id": "x", "at": "2030-06-01T12:00:00Z", "payload": "%s"}',
          "a key": b'{"id": "x", "at": "2030-06-01T12:00:00Z", "%s": 1}'}  # fmt: skip


def cases() -> Iterator[Case]:
    yield from _cut()
    yield from _around()
    yield from _other_formats()
    for encoding in ENCODINGS:
        yield parked(f"in {encoding}", "body", GOOD.decode().encode(encoding))
    for what, bad in NOT_UTF8.items():
        for place, text in PLACES.items():
            yield parked(f"{what} in {place}", "body", text.replace(b"%s", bad))
    # Python's own parser lets half a pair through, so that the reason can name the field.
    for what, bad in {"high": b"\xed\xa0\x80", "low": b"\xed\xb0\x80"}.items():
        for place, text in PLACES.items():
            field = "?" if place == "a key" else place
            yield parked(f"a {what} surrogate in {place}", field, text.replace(b"%s", bad))
    yield from _sizes()


def _cut() -> Iterator[Case]:
    """After every byte but the last: none of them is whole."""
    whole = b'{"id": "cut", "at": "2030-06-01T12:00:00Z", "payload": [1]}'
    for length in range(len(whole)):
        yield parked(f"cut after {length} bytes", "body", whole[:length])
    for length in (1, 2, 7, 20):
        yield parked(f"begins {length} bytes late", "body", whole[length:])


def _around() -> Iterator[Case]:
    for name, text in {"spaces": b"   ", "line breaks": b"\r\n\n", "tabs": b"\t\t"}.items():
        yield stored(f"{name} before it", text + GOOD)
        yield stored(f"{name} after it", GOOD + text)
    others = {
        "NUL": b"\0", "a form feed": b"\f", "a vertical tab": b"\v", "a no-break space": b"\xc2\xa0",
        "a byte order mark": b"\xef\xbb\xbf", "a comma": b",", "a brace": b"}", "a letter": b"x", "a semicolon": b";",
        "a record separator": b"\x1e", "XSSI armour": b")]}',\n", "a line separator": b"\xe2\x80\xa8",
    }  # fmt: skip
    for name, text in others.items():
        yield parked(f"{name} before it", "body", text + GOOD)
        yield parked(f"{name} after it", "body", GOOD + text)
    yield parked("two of them", "body", GOOD + GOOD)
    yield parked("two of them on two lines", "body", GOOD + b"\n" + GOOD)
    yield parked("a list of two", "body", b"[" + GOOD + b"," + GOOD + b"]")
    yield parked("JSON in a JSON text", "body", json.dumps(GOOD.decode()).encode())


def _gzip(text: bytes) -> bytes:
    """Compress. Versions of Python name different operating systems, so none is named."""
    packed = gzip.compress(text, mtime=0)
    return packed[:9] + b"\xff" + packed[10:]


def _other_formats() -> Iterator[Case]:
    yield parked("gzip", "body", _gzip(GOOD))
    yield parked("zlib", "body", zlib.compress(GOOD))
    yield parked("a gzip bomb", "body", _gzip(b" " * 5_000_000 + GOOD))
    yield parked("base64", "body", base64.b64encode(GOOD))
    yield parked("XML", "body", b'<?xml version="1.0"?><id>x</id>')
    yield parked("an XML bomb", "body", b'<!DOCTYPE l [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><l>&b;</l>')
    yield parked("YAML", "body", b"id: x\nat: 2030-06-01T12:00:00Z\n")
    yield parked("a form", "body", b"id=x&at=2030-06-01T12%3A00%3A00Z")
    yield parked("MessagePack", "body", b"\x82\xa2id\xa1x\xa2at\xa12")
    yield parked("CBOR", "body", b"\xa2bidaxbat\x1a\x70\x00\x00\x00")
    yield parked("BSON", "body", b"\x12\x00\x00\x00\x02id\x00\x02\x00\x00\x00x\x00\x00")
    yield parked("a pickle", "body", b"cposix\nsystem\n(S'true'\ntR.")
    yield parked("Protocol Buffers", "body", b"\x0a\x01x\x12\x142030-06-01T12:00:00Z")
    yield parked("an AMQP frame", "body", b"\x01\x00\x01\x00\x00\x00\x04\x00\x3c\x00\x28\xce")
    yield parked("an HTTP request", "body", b"POST / HTTP/1.1\r\nHost: x\r\n\r\n" + GOOD)
    yield parked("a word", "body", b"ring me at nine")
    yield parked("nothing but spaces", "body", b"    ")
    yield parked("nothing but NUL", "body", b"\0" * 64)
    yield parked("nothing but FF", "body", b"\xff" * 64)
    yield parked("every byte there is", "body", bytes(range(256)))


def _sizes() -> Iterator[Case]:
    limit = 256 * 1024
    yield stored("a payload of exactly the limit", a_moment(payload="x" * (limit - 2)))
    yield parked("a payload one byte over the limit", "payload", a_moment(payload="x" * (limit - 1)))
    yield parked("a payload of two megabytes", "payload", a_moment(payload="x" * 2_000_000))
    yield parked("a number of two megabytes", "payload", b'{"id": "x", "payload": ' + b"1" * 2_000_000 + b"}")
    yield parked("two megabytes of white space", "payload", GOOD + b" " * 2_000_000)
    yield stored("a little white space", GOOD + b" " * 20_000)
    yield parked("a payload of many small things, over the limit", "payload", a_moment(payload=[0] * 100_000))
    yield stored("a payload of many small things", a_moment(payload=[0] * 80_000))
    yield parked("a payload of 256 KiB in escapes", "payload",
                 b'{"id": "x", "at": "2030-06-01T12:00:00Z", "payload": "' + b"\\u0041" * 45_000 + b'"}')  # fmt: skip
    yield parked("two megabytes of nothing readable", "payload", b"\xff" * 2_000_000)
    assert ID in GOOD
