"""The settings of delivery as an operator writes them."""

from ipaddress import ip_network

import pytest
from pydantic import ValidationError

from delivery.http.connection_settings import parse_proxy
from delivery.settings import DeliverySettings
from shared.runtime.settings import load_settings

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


def test_a_proxy_is_an_address_and_its_password_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    through = settings(monkeypatch, WEBHOOK_PROXY="http://duebell:p%40ss@proxy.example:3128")
    proxy = parse_proxy(through.webhook_proxy.get_secret_value())
    assert proxy is not None
    assert str(proxy.url) == "http://proxy.example:3128"
    assert proxy.headers == {"Proxy-Authorization": "Basic ZHVlYmVsbDpwQHNz"}
    for shown in (repr(through), repr(proxy)):
        assert "p%40ss" not in shown
        assert "ZHVlYmVsbDpwQHNz" not in shown


def test_without_a_proxy_and_a_certificate_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty is as good as not set: that is what a compose file writes."""
    empty = settings(monkeypatch, WEBHOOK_PROXY="", WEBHOOK_CLIENT_CERT="", WEBHOOK_CLIENT_KEY="")
    assert parse_proxy(empty.webhook_proxy.get_secret_value()) is None
    assert empty.webhook_client_cert is None
    assert empty.webhook_client_key is None


@pytest.mark.parametrize(
    "address",
    ["proxy.example:3128", "socks5://proxy.example:1080", "http://proxy.example", "http://:3128", "http://proxy:x",
     "http://duebell:secret@proxy.example:3128/path", "http://proxy.example:3128?x", "http://[::1:3128", "http://a:0"],
)  # fmt: skip
def test_what_is_no_address_of_a_proxy_is_refused_without_being_quoted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    for name, value in {**REQUIRED, "WEBHOOK_PROXY": address}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        load_settings(DeliverySettings)
    said = capsys.readouterr().err
    assert said == "WEBHOOK_PROXY: is not an address such as http://user:password@proxy.example:3128\n"
