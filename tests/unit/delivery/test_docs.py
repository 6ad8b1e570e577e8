"""docs/delivery.md says what is so: its example runs, and it names every error there is."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from delivery.attempt.retry import CallError
from delivery.attempt.signing import parse_secrets, signature_headers
from delivery.http.request import request_body
from shared.contract.messages import DeliveryFailed
from tests.support.builders import a_delivery

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


def test_an_example_in_json_is_what_delivery_sends_or_reads() -> None:
    body, secrets, announced = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    assert body.keys() == json.loads(request_body(a_delivery(trigger_id=None))).keys()
    assert {name: len(signers) for name, signers in parse_secrets(json.dumps(secrets)).items()} == {
        "billing": 1,
        "shop": 2,
    }
    assert DeliveryFailed.model_validate(announced).model_dump(mode="json", exclude_none=True) == announced


def test_every_error_is_there() -> None:
    assert [error for error in CallError if f"`{error}`" not in PAGE] == []
