"""The headers of a webhook: names and values that would break the HTTP request, and names that Duebell or HTTP set."""

from collections.abc import Iterator
from typing import Any

from tests.hostile.case import Case, parked, stored, with_webhook

RESERVED = [
    "Host", "host", "HOST", "Content-Length", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive",
    "Upgrade",
    "TE", "Trailer", "Expect", "Content-Type", "User-Agent", "X-Idempotency-Key", "x-idempotency-key", "Webhook-Id",
    "Webhook-Timestamp", "Webhook-Signature", "Traceparent", "Proxy-Authorization", "Proxy-Connection",
    "Proxy-Authenticate",
]  # fmt: skip
NOT_NAMES = [
    "", " ", "X A", " X-A", "X-A ", "X-A:", ":authority", ":method", "X\r\nHost: evil", "X\n", "X\0", "X\t", "X-É",
    "X(", "X)", "X<",
    "X@", "X,", "X;", "X\\", 'X"', "X/", "X[", "X?", "X=", "X{", "X\x7f", "X\u200b", "Ｘ", "\ufeffX", "Ｈost",
]  # fmt: skip
NOT_VALUES = [
    "\r", "\n", "a\r\nX-Evil: 1", "a\nb", "a\rb", "a\r\n\r\nbody", "\0", "a\0b", "\x01", "\x0b", "\x0c", "\x1b[31m",
    "\x7f", "é", "时",
    "\u2028", "a\u010ab", "a\u010db", "\x85", "\xa0", "😀", "\r\n Folded", "x" * 4001,
]  # fmt: skip
VALUES = [
    "",
    " ",
    "x",
    "\t",
    "a, b",
    "Bearer abc.def==",
    "x" * 4000,
    '"quoted"',
    "a:b;c=d",
    "=?utf-8?q?x?=",
    "%0d%0a",
    "\\r\\n",
]
NAMES = [
    "X-A",
    "x",
    "Authorization",
    "Cookie",
    "X_A",
    "X.A",
    "~!#$%&'*+-.^_`|",
    "X-Forwarded-For",
    "A" * 1000,
    "Accept-Encoding",
    "Range",
]


def cases() -> Iterator[Case]:
    for name in RESERVED:
        yield parked(f"the header {name}", "webhook.headers", with_webhook(headers={name: "x"}))
    for number, name in enumerate(NOT_NAMES):
        yield parked(f"the header name {name!r}, {number}", "webhook.headers", with_webhook(headers={name: "x"}))
    for number, value in enumerate(NOT_VALUES):
        blamed = "webhook.headers.X-A" if len(value) > 4000 else "webhook.headers"
        yield parked(f"the header value {value[:20]!r}, {number}", blamed, with_webhook(headers={"X-A": value}))
    for number, value in enumerate(VALUES):
        yield stored(f"a good header value {value[:20]!r}, {number}", with_webhook(headers={"X-A": value}))
    for name in NAMES:
        yield stored(f"a good header name {name[:20]!r}", with_webhook(headers={name: "x"}))
    yield stored("50 headers", with_webhook(headers={f"X-{number}": "x" for number in range(50)}))
    yield parked("51 headers", "webhook.headers", with_webhook(headers={f"X-{number}": "x" for number in range(51)}))
    yield parked("500 headers", "webhook.headers", with_webhook(headers={f"X-{n}": "" for n in range(500)}))
    not_texts: list[Any] = [None, 1, True, [], {}, ["x"]]
    for other in not_texts:
        yield parked(f"a header that is {other!r}", "webhook.headers.X-A", with_webhook(headers={"X-A": other}))
