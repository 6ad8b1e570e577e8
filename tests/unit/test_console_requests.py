"""How the console reads requests that no page of its own sends: each is refused in words, and does nothing."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from console.access.users import Role, User
from console.api.commanding import CommandBody
from console.commands import Command, check_command
from console.errors import PageFailure
from console.metrics import Metrics
from console.pages import deliveries
from console.pages.new import EMPTY, content_of
from console.settings import ConsoleSettings
from console.web.context import Visit, Visitor
from console.web.forms import Form, require_same_origin
from console.web.queries import Filters
from console.web.rendering import Renderer
from console.web.responses import Surroundings
from console.web.visitors import client_address
from shared.contract.address_rules import parse_networks
from shared.contract.messages import REQUEST_TYPE
from shared.reading.deliveries import DeliveryPlace
from shared.reading.jobs import Cursor

# Python reads no number of so many digits.
LONG = pytest.param("9" * 5000, id="thousands-of-digits")
ALICE = User("alice", Role.OPERATOR, sees_payloads=True)
PROXY = SimpleNamespace(settings=SimpleNamespace(console_trusted_proxies=parse_networks("10.0.0.0/8")))


def a_request(*headers: tuple[str, str], client: str = "10.0.0.1", **query: str) -> Request:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    scope = {
        "type": "http",
        "path": "/",
        "headers": raw,
        "client": (client, 1),
        "query_string": urlencode(query).encode(),
    }
    return Request(scope)


def a_visit(**query: str) -> Visit:
    console: Any = SimpleNamespace()  # has no database: a page that asks it fails
    return Visit(a_request(**query), console, Visitor(ALICE, "", "", has_session=False), ZoneInfo("UTC"))


async def test_a_filter_that_cannot_be_read_does_not_replay_what_it_would_have_left_out() -> None:
    with pytest.raises(PageFailure, match="Nothing was sent") as refused:
        await deliveries.act(a_visit(job="j" * 201), Form({"action": ["all"]}))
    assert (refused.value.status, refused.value.text) == (400, "job: has more than 200 characters")


@pytest.mark.parametrize("text", [LONG, str(2**63), "0", "-1", "²", ""])
def test_what_cannot_be_the_number_of_a_delivery_is_none(text: str) -> None:
    assert not deliveries.is_number(text)


@pytest.mark.parametrize("number", ["9" * 19, "-1", "", "²"])
def test_a_forged_place_among_deliveries_is_no_place(number: str) -> None:
    with pytest.raises(ValueError, match="place"):
        DeliveryPlace.parse(f"2026-07-10T09:00:00Z/{number}")


@pytest.mark.parametrize("digits", ["9" * 20, LONG])
@pytest.mark.parametrize("name", ["revision", "misfire_grace_seconds"])
def test_a_number_of_the_form_that_no_message_can_carry_is_a_problem(name: str, digits: str) -> None:
    content, problems = content_of({**EMPTY, "id": "a", "at": "2030-01-01T09:00", name: digits})
    assert problems == [f"{name}: has more than 18 digits"]
    assert name not in content


def test_an_id_that_is_not_utf_8_is_refused_as_the_consumer_would() -> None:
    body = msgspec.json.decode(b'{"id": "a\xff", "at": "2030-01-01T00:00:00Z"}', type=dict[str, msgspec.Raw])
    refused = check_command(Command(REQUEST_TYPE, CommandBody.of(body).content), 1000)
    assert refused is not None
    assert "UTF-8" in refused.errors[0]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("team=billing", {"team": "billing"}),
        ("team=billing, env=b", {"team": "billing", "env": "b"}),
        ("env=a, b", {"env": "a, b"}),
        ("env=a, b,team=x", {"env": "a, b", "team": "x"}),
        ("", {}),
    ],
)
def test_labels_of_an_address_have_commas_between_them_and_within(text: str, labels: dict[str, str]) -> None:
    filters = Filters({"label": text}, ZoneInfo("UTC"))
    assert filters.labels("label") == labels
    assert not filters.problems


@pytest.mark.parametrize("job_id", ["a ", " a", "a\n", "a/b"])
def test_a_list_goes_on_behind_an_id_with_white_space(job_id: str) -> None:
    last = Cursor(None, job_id)
    assert Filters({"after": str(last)}, ZoneInfo("UTC")).place("after", Cursor.parse) == last


@pytest.mark.parametrize("origin", ["http://[", "null", "https://console.example.com.evil", "http://"])
def test_a_form_of_another_origin_is_refused(origin: str) -> None:
    console: Any = SimpleNamespace(settings=ConsoleSettings.model_construct(), metrics=Metrics(CollectorRegistry()))
    host = ("Host", "console.example.com")
    require_same_origin(a_request(host, ("Origin", "https://console.example.com")), console)
    with pytest.raises(PageFailure) as refused:
        require_same_origin(a_request(host, ("Origin", origin)), console)
    assert refused.value.status == 403


def test_a_link_repeats_what_the_address_has_under_any_name() -> None:
    assert Renderer("/ops").url("/schedules", path="a b", self="", x=None) == "/ops/schedules?path=a+b"


def test_log_ins_are_limited_by_the_address_that_the_proxy_has_seen() -> None:
    console: Any = PROXY
    forged = ("X-Forwarded-For", "203.0.113.9")
    assert client_address(a_request(forged, ("X-Forwarded-For", "198.51.100.7")), console) == "198.51.100.7"
    assert client_address(a_request(("X-Forwarded-For", "203.0.113.9, 198.51.100.7")), console) == "198.51.100.7"
    assert client_address(a_request(forged, client="192.0.2.1"), console) == "192.0.2.1"
    assert client_address(a_request(), console) == "proxy"


@pytest.mark.parametrize("path", ["*", "", "/", "//", "/schedules"])
async def test_every_path_gets_its_headers(path: str) -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 404})

    async def receive() -> Message:
        return {"type": "http.request"}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await Surroundings(app, "", Metrics(CollectorRegistry()))({"type": "http", "path": path}, receive, send)
    assert (b"x-frame-options", b"DENY") in sent[0]["headers"]
