"""What is sent, byte for byte and header by header."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from standardwebhooks import Webhook, WebhookVerificationError

from delivery.attempt.retry import CallError, Unanswered
from delivery.http.request import Request, host_of, prepare
from delivery.model import Delivery
from shared.contract.address_rules import AddressRules
from shared.version import VERSION
from tests.support.builders import a_delivery

NOW = datetime(2026, 7, 10, 9, 0, 1, tzinfo=UTC)

A_DELIVERY = a_delivery(
    payload='{"amount": 1.10, "big": 123456789012345678901234567890, "nul": "\\u0000", "snow": "☃"}',
    headers={"Authorization": "Bearer t", "Accept-Encoding": "gzip"},
)


def prepared(delivery: Delivery, signers: list[Webhook] | None = None, rules: AddressRules | None = None) -> Request:
    request = prepare(delivery, signers, rules or AddressRules(), NOW)
    assert isinstance(request, Request)
    return request


def test_the_body_has_the_occurrence_and_the_payload_byte_for_byte() -> None:
    assert A_DELIVERY.payload is not None
    assert prepared(A_DELIVERY).body == (
        b'{"id":"invoice-42","topic":"invoices.reminder","sequence":3,"due_at":"2026-07-10T09:00:00Z",'
        b'"fired_at":"2026-07-10T09:00:00.005000Z","payload":' + A_DELIVERY.payload.encode() + b"}"
    )


def test_no_payload_is_null() -> None:
    assert prepared(replace(A_DELIVERY, payload=None)).body.endswith(b'"payload":null}')


def test_the_headers_are_duebells_and_the_requests_own() -> None:
    assert prepared(A_DELIVERY).headers == {
        "Authorization": "Bearer t",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": f"Duebell/{VERSION}",
        "X-Idempotency-Key": "event-abc",
    }


def test_a_requests_own_accept_header_is_the_only_one() -> None:
    headers = prepared(a_delivery(headers={"accept": "text/plain"})).headers
    assert [(name, value) for name, value in headers.items() if name.lower() == "accept"] == [("accept", "text/plain")]


def test_a_secret_whose_name_is_unknown_stops_the_call() -> None:
    result = prepare(replace(A_DELIVERY, secret="billing"), None, AddressRules(), NOW)
    assert result == Unanswered(CallError.SECRET_MISSING)


def test_the_signature_is_of_the_very_body_that_is_sent() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    delivery = replace(A_DELIVERY, secret="billing")
    now = datetime.now(UTC)  # a verifier compares it with its own clock
    request = prepare(delivery, [Webhook(secret)], AddressRules(), now)
    assert isinstance(request, Request)
    assert request.headers["webhook-id"] == request.headers["X-Idempotency-Key"] == delivery.idempotency_key
    Webhook(secret).verify(request.body, request.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(request.body + b" ", request.headers)


def test_a_port_that_is_not_allowed_stops_the_call() -> None:
    rules = AddressRules(allow_ports=frozenset({80}))
    assert prepare(A_DELIVERY, None, rules, NOW) == Unanswered(
        CallError.FORBIDDEN_PORT, "port 443 is not one of WEBHOOK_ALLOW_PORTS"
    )
    assert prepared(replace(A_DELIVERY, url="http://example.com/"), rules=rules)


@pytest.mark.parametrize(
    "url", ["http://", "ftp://example.com/", "example.com", "http://u:p@example.com/", "http://a:b"]
)
def test_what_is_no_address_to_call_stops_the_call(url: str) -> None:
    assert prepare(replace(A_DELIVERY, url=url), None, AddressRules(), NOW) == Unanswered(CallError.INVALID_URL)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://example.com/a", "example.com:80"),
        ("https://EXAMPLE.com", "example.com:443"),
        ("https://example.com.:8443/", "example.com:8443"),
        ("http://127.0.0.1:8080/x?y", "127.0.0.1:8080"),
        ("http://[2606:4700::1]/", "[2606:4700::1]:80"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example:443"),
    ],
)
def test_the_host_is_what_limits_go_by(url: str, host: str) -> None:
    assert host_of(url) == host
    assert host_of(url.upper()) == host


@pytest.mark.parametrize("literal", ["2606:4700::1", "2606:4700:0:0:0:0:0:1", "2606:4700::0001", "2606:4700::0.0.0.1"])
def test_every_spelling_of_an_ipv6_address_is_one_host(literal: str) -> None:
    assert host_of(f"http://[{literal}]/") == "[2606:4700::1]:80"


@pytest.mark.parametrize(
    ("scheduled", "sent"),
    [
        ("/a//b;c/%2F%41%7e?x=%2e&y=/../z&sig=ab%2B%3D", "/a//b;c/%2F%41%7e?x=%2e&y=/../z&sig=ab%2B%3D"),
        ("/a/%2e%2e/b", "/a/%2e%2e/b"),
        ("/%zz%", "/%zz%"),
        ("/a/../b/./c", "/b/c"),
        ("/../../a", "/a"),
        ('/a"{b}', "/a%22%7Bb%7D"),
        ("/a?x=1#part", "/a?x=1"),
        ("?x=1", "/?x=1"),
        ("/a?", "/a?"),
        ("/a/b/..", "/a/"),
        ("/a?x=`{}'?y|", "/a?x=`{}'?y|"),
        ("", "/"),
    ],
)
def test_path_and_query_go_out_as_scheduled_but_for_dot_segments_and_what_no_url_may_hold(
    scheduled: str, sent: str
) -> None:
    target = prepared(replace(A_DELIVERY, url=f"https://example.com{scheduled}")).target
    assert target.raw_path_qs == sent
    assert str(target) == f"https://example.com{sent}"


@pytest.mark.parametrize("url", ["http://", "mailto:a@b", "http://:80/", "http://a:99999999/"])
def test_a_url_without_a_host_has_none(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - for several reasons
        host_of(url)


def test_nothing_private_is_in_what_a_delivery_shows_of_itself() -> None:
    shown = repr(A_DELIVERY)
    for private in ("Bearer", "amount", "x=%20"):
        assert private not in shown
