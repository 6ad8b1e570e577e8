"""Secrets that no log, metric, queue or table may repeat, one for every place where an application can put one, and
commands that are refused around them.
"""

import base64
import json
from typing import Any

from tests.support.builders import a_request

SIGNING = "whsec_" + base64.b64encode(b"canary-signing-secret-32-bytes!!").decode()
SIGNING_OLD = "whsec_" + base64.b64encode(b"canary-signing-secret-of-old....").decode()

# Short pieces, so that a part of a secret is found, too.
CANARIES = [
    "canary",  # in all that follows, and in the answers of receivers
    base64.b64encode(b"canary-signing-secret").decode(),
    b"canary".hex(),
]
QUERY = "token=canary-query"
HEADERS = {"Authorization": "Bearer canary-header", "X-Api-Key": "canary-key"}
PAYLOAD = {"card": "canary-payload", "deep": [{"er": "canary-deep"}]}


def private(url: str, **webhook: Any) -> dict[str, Any]:
    """A payload, headers and a query of a URL that no log may repeat."""
    return {"payload": PAYLOAD, "webhook": {"url": f"{url}/canary-path?{QUERY}", "headers": HEADERS, **webhook}}


def bad_requests() -> list[bytes]:
    """Requests that are refused, with secrets beside the wrong value or in it."""
    good = a_request(id="bad", **private("https://example.com"))
    hook = good["webhook"]

    def hooked(**changed: Any) -> dict[str, Any]:
        return {**good, "webhook": {**hook, **changed}}

    wrong: list[Any] = [
        {**good, "at": "yesterday"},
        {**good, "at": 5},
        {**good, "timezone": "Mars/Olympus"},
        {**good, "rrule": "FREQ=NEVER"},
        {**good, "topic": "two words"},
        {**good, "misfire": "perhaps"},
        {**good, "revision": "one"},
        {**good, "surprise": "canary-unknown-field"},
        {**good, "id": ""},
        {**good, "payload": {"big": "canary-payload" * 40_000}},
        {**good, "payload": json.loads("[" * 70 + '"canary-deep"' + "]" * 70)},
        {**good, "webhook": "https://example.com/?canary-string"},
        {**good, "webhook": [hook]},
        hooked(url="https://user:canary-password@example.com/"),
        hooked(url="https://user:canary/password@example.com/"),
        hooked(url="https://example.com:canary-port/"),
        hooked(url="https://[canary-address]/"),
        hooked(url="ftp://example.com/canary"),
        hooked(url="https://exa mple.com/canary"),
        hooked(url="https://example.com/" + "canary" * 400),
        hooked(url=["https://example.com/canary"]),
        hooked(headers={"Authorization: Bearer canary-in-a-name": ""}),
        hooked(headers={"Authorization: Bearer canary-in-a-name": 5}),
        hooked(headers={"Authorization": "Bearer canary\r\nX-Evil: canary"}),
        hooked(headers={"Authorization": "Bearer canary-ключ"}),
        hooked(headers={"Authorization": "canary" * 1000}),
        hooked(headers={"Authorization": ["canary-list"]}),
        hooked(headers={"Host": "canary-host"}),
        hooked(headers="canary-headers"),
        hooked(secret=f"the value itself: {SIGNING}"),
        hooked(secret={"whsec": "canary-object"}),
        hooked(timeout_seconds="canary-number"),
        hooked(max_retries="canary-number"),
        hooked(surprise="canary-unknown-field"),
    ]
    texts = [json.dumps(content).encode() for content in wrong]
    broken = json.dumps(good).encode()
    return [
        *texts,
        broken[:-20],
        broken.replace(b'"canary-deep"', b"NaN"),
        broken.replace(b"canary-deep", b"canary-\\ud800"),
        broken.replace(b"canary-deep", b"canary-\xff"),
        b'"canary-text"',
        b"canary-payload, not JSON",
    ]
