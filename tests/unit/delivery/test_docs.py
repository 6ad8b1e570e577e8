"""docs/delivery.md says what is so: its example runs, and it names every setting, metric and error there is."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from delivery.attempt.retry import CallError
from delivery.attempt.signing import parse_secrets, signature_headers
from delivery.metrics import Metrics
from delivery.settings import DeliverySettings
from shared.runtime.settings import Settings

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


def test_every_setting_is_there() -> None:
    own = DeliverySettings.model_fields.keys() - Settings.model_fields.keys() | {"metrics_port"}
    assert [name for name in own if f"`{name.upper()}`" not in PAGE] == []


def test_every_metric_is_there() -> None:
    registry = CollectorRegistry()
    Metrics(registry)
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"`{name}`" in PAGE or f"`{name}{{" in PAGE, name


def test_every_error_is_there() -> None:
    assert [error for error in CallError if f"`{error}`" not in PAGE] == []
