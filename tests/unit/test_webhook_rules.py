"""What is known about a webhook when it is scheduled: addresses, ports and secrets that delivery will not take."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.commands.parse import RawCommand, Refused, read_command
from consumer.commands.schedule import Schedule
from consumer.commands.webhook import WebhookRules
from consumer.settings import ConsumerSettings
from delivery.settings import DeliverySettings
from shared.contract.address_rules import AddressRules, Network, parse_networks, parse_ports
from shared.contract.messages import REQUEST_TYPE
from shared.errors import ForbiddenAddress
from tests.support.builders import NOON

LOOPBACK = "127.0.0.0/8,::1/128"
NEVER = [
    "http://10.0.0.1/", "http://127.0.0.1:8000/hook", "http://169.254.169.254/latest/meta-data", "http://0.0.0.0/",
    "https://192.168.1.1/", "http://[::1]:8000/", "http://[::ffff:127.0.0.1]/", "http://[FE80::1]/", "http://[fd00::1]/",
    "http://localhost:8000/hook", "HTTPS://LOCALHOST/", "http://localhost./",
]  # fmt: skip
PERHAPS = [
    "https://example.com/", "http://intranet/", "http://receiver:8090/", "http://foo.localhost/", "http://1.1.1.1/",
    "http://[2606:4700:4700::1111]/", "http://127.0.0.1.nip.io/", "http://3com.example/",
]  # fmt: skip


def errors_of(rules: WebhookRules | None, **webhook: str) -> tuple[str, ...]:
    body = json.dumps({"id": "x", "at": "2030-01-01T00:00:00Z", "webhook": webhook}).encode()
    command = read_command(RawCommand(body, REQUEST_TYPE, ""), NOON, 1000, rules)
    match command:
        case Refused(errors):
            return errors
        case _:
            assert isinstance(command, Schedule)
            return ()


def rules(networks: str = "", ports: str = "", secrets: str = "") -> WebhookRules:
    known = frozenset(name for name in secrets.split(",") if name)
    return WebhookRules(AddressRules(parse_networks(networks), parse_ports(ports)), known)


@pytest.mark.parametrize("url", NEVER)
def test_what_can_never_be_called_is_refused_when_it_is_scheduled(url: str) -> None:
    [error] = errors_of(rules(), url=url)
    assert error == "webhook.url: the address is not public, and Duebell may not call it (WEBHOOK_ALLOW_NETWORKS)"


@pytest.mark.parametrize("url", PERHAPS)
def test_what_a_name_service_decides_is_taken(url: str) -> None:
    assert errors_of(rules(), url=url) == ()


@pytest.mark.parametrize("networks", [LOOPBACK, "127.0.0.0/8", "::1/128"])
def test_localhost_is_taken_where_any_of_its_addresses_may_be_called(networks: str) -> None:
    assert errors_of(rules(networks), url="http://localhost:8000/") == ()


def test_an_address_of_a_network_that_is_open_is_taken() -> None:
    assert errors_of(rules("10.1.0.0/16"), url="http://10.1.2.3/") == ()
    assert errors_of(rules("10.1.0.0/16"), url="http://10.2.2.3/")
    assert errors_of(rules("10.1.0.0/16"), url="http://localhost/")


@pytest.mark.parametrize(
    ("url", "port"), [("https://a.example/", 443), ("http://a.example/", 80), ("http://a.example:8080", 8080)]
)
def test_a_port_that_may_not_be_called_is_refused(url: str, port: int) -> None:
    [error] = errors_of(rules(ports="99"), url=url)
    assert error == f"webhook.url: Duebell may not call port {port} (WEBHOOK_ALLOW_PORTS)"
    assert errors_of(rules(ports=f"99,{port}"), url=url) == ()


@pytest.mark.parametrize(("name", "hint"), [("biling", "; did you mean billing?"), ("whsec_MfKQ9r8GKYqrTwjUPD8I", "")])
def test_an_unknown_secret_is_refused_and_not_quoted(name: str, hint: str) -> None:
    [error] = errors_of(rules(secrets="billing,shop"), url="https://a.example/", secret=name)
    assert error == f"webhook.secret: Duebell knows no secret of this name (WEBHOOK_SECRET_NAMES){hint}"
    assert errors_of(rules(secrets="billing,shop"), url="https://a.example/", secret="shop") == ()


def test_any_secret_is_taken_where_the_names_are_not_told() -> None:
    assert errors_of(rules(), url="https://a.example/", secret="biling") == ()


def test_without_rules_nothing_is_refused() -> None:
    """As on the command line, which does not know the consumer's settings."""
    assert errors_of(None, url="http://10.0.0.1/", secret="any") == ()


def test_all_that_is_wrong_is_told_at_once() -> None:
    errors = errors_of(rules(ports="443", secrets="billing"), url="http://10.0.0.1/", secret="x")
    assert [error.split(":")[0] for error in errors] == ["webhook.url", "webhook.url", "webhook.secret"]


NETWORKS = st.sampled_from(["", LOOPBACK, "10.0.0.0/8", "::/0", "0.0.0.0/0,fc00::/7"]).map(parse_networks)


@given(st.ip_addresses(), NETWORKS)
def test_the_consumer_refuses_exactly_the_addresses_that_delivery_forbids(
    address: object, networks: tuple[Network, ...]
) -> None:
    judges = AddressRules(networks)
    assert refuses(judges.check_written_host, str(address)) == refuses(judges.check_address, str(address))


def refuses(check: Callable[[str], None], host: str) -> bool:
    try:
        check(host)
    except ForbiddenAddress:
        return True
    return False


def test_consumer_and_delivery_read_the_same_settings_with_the_same_defaults() -> None:
    for name in ("webhook_allow_networks", "webhook_allow_ports"):
        assert ConsumerSettings.model_fields[name].default == DeliverySettings.model_fields[name].default
    stores: dict[str, Any] = {"database_url": "postgresql://u@h/d", "amqp_url": "amqp://h/"}
    told: dict[str, Any] = {"webhook_allow_networks": LOOPBACK, "webhook_secret_names": "billing, shop"}
    settings = ConsumerSettings(**stores, **told)
    assert settings.address_rules == AddressRules(parse_networks(LOOPBACK))
    assert settings.webhook_secret_names == {"billing", "shop"}
    assert ConsumerSettings(**stores).webhook_secret_names == frozenset()
