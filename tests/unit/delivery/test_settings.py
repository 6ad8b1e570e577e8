"""The settings of delivery as an operator writes them."""

import tomllib
from ipaddress import ip_network
from pathlib import Path

import pytest
from pydantic import ValidationError

from delivery.settings import DeliverySettings
from shared.version import VERSION

REQUIRED = {"DATABASE_URL": "postgresql://u:p@127.0.0.1/d", "AMQP_URL": "amqp://127.0.0.1/"}


def settings(monkeypatch: pytest.MonkeyPatch, **environment: str) -> DeliverySettings:
    for name, value in {**REQUIRED, **environment}.items():
        monkeypatch.setenv(name, value)
    return DeliverySettings()


def test_nothing_is_open_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = settings(monkeypatch)
    assert defaults.webhook_allow_networks == ()
    assert defaults.webhook_allow_ports == frozenset()
    assert defaults.metrics_port == 9103


def test_networks_and_ports_are_comma_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = settings(monkeypatch, WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8, ::1/128", WEBHOOK_ALLOW_PORTS="80,443")
    assert opened.webhook_allow_networks == (ip_network("127.0.0.0/8"), ip_network("::1/128"))
    assert opened.webhook_allow_ports == {80, 443}


@pytest.mark.parametrize(("name", "value"), [("WEBHOOK_ALLOW_NETWORKS", "ten"), ("WEBHOOK_ALLOW_PORTS", "80-90")])
def test_what_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        settings(monkeypatch, **{name: value})
    assert [str(error["loc"][0]).upper() for error in wrong.value.errors()] == [name]


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "whsec" not in repr(settings(monkeypatch, WEBHOOK_SECRETS='{"a": "whsec_x"}'))


def test_the_user_agent_names_this_release() -> None:
    assert tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"] == VERSION
