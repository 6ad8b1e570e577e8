"""docs/delivery.md says what is so: its example runs, and it names every error there is."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from delivery.attempt.retry import CallError
from delivery.attempt.signing import parse_secrets, signature_headers

PAGE = Path("docs/delivery.md").read_text()


def test_the_example_verifies_what_is_signed() -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(example, scope)
    [signer] = parse_secrets(json.dumps({"billing": scope["SECRET"]}))["billing"]
    body = b'{"id":"invoice-42"}'
    headers = signature_headers([signer], "event-1", body, datetime.now(UTC))
    assert scope["is_genuine"](body, headers)
    assert not scope["is_genuine"](body + b" ", headers)
    assert not scope["is_genuine"](body, {**headers, "webhook-id": "event-2"})
    old = signature_headers([signer], "event-1", body, datetime.now(UTC) - timedelta(hours=1))
    assert not scope["is_genuine"](body, old)


def test_every_error_is_there() -> None:
    assert [error for error in CallError if f"`{error}`" not in PAGE] == []
