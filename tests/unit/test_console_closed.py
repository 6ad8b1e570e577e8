"""The console is closed: each of its addresses, to each who has no right to it. There is no database: a page that is
reached in spite of that fails.
"""

from dataclasses import replace
from hashlib import scrypt
from http.cookies import SimpleCookie
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.routing import Route

from console.access.attempts import BURSTS
from console.access.passwords import PasswordHash
from console.access.tokens import TokenHash, make_token
from console.api.operation import API_PATH
from console.web.app import make_app, routes
from console.web.context import Console
from tests.support.consoles import a_console


def a_cheap_hash(password: str) -> PasswordHash:
    """Real ones take a quarter of a second."""
    salt = b"salt" * 4
    return PasswordHash(16, 1, 1, salt, scrypt(password.encode(), salt=salt, n=16, r=1, p=1, dklen=32))


PASSWORD, TOKEN, PROXY = "correct horse", make_token(), "10.0.0.1"
HASH = a_cheap_hash(PASSWORD)
USERS = (
    f"alice:operator+payloads:{HASH} victor:viewer:{HASH} pauline:operator:- robot:operator:{TokenHash.of(TOKEN)} "
    f"reader:viewer:{TokenHash.of(TOKEN + 'r')}"
)
ACCESS = {"console_users": SecretStr(USERS), "console_trusted_proxies": f"{PROXY}/32"}
ORIGIN, ELSEWHERE = "http://console.example.com", "192.0.2.7"
FOR_ALL = {"/log-in", f"{API_PATH}/openapi.json"}
NEED_NO_OPERATOR = {"/log-in", "/log-out", "/preferences", f"{API_PATH}/preview"}


class Visitor:
    """Asks the console from an address, and keeps no cookie unless it is told to."""

    def __init__(self, console: Console, address: str = ELSEWHERE, base_url: str = ORIGIN) -> None:
        self.console = console
        transport = httpx.ASGITransport(make_app(console), raise_app_exceptions=False, client=(address, 1))
        self.client = httpx.AsyncClient(transport=transport, base_url=base_url)

    async def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        self.client.cookies.clear()
        return await self.client.request(method, path, **given)

    async def log_in(self, name: str, password: str = PASSWORD, **form: str) -> httpx.Response:
        return await self.ask(
            "POST", "/log-in", data={"name": name, "password": password, **form}, headers={"Origin": ORIGIN}
        )

    async def session_of(self, name: str) -> tuple[dict[str, str], str]:
        """Return headers that carry a session of the user, and the token of its forms."""
        answer = await self.log_in(name)
        assert answer.status_code == 303
        cookie = answer.cookies["duebell_session"]
        session = self.console.session_key.read(cookie)
        assert session is not None
        token = self.console.session_key.form_token(session.user, session.id)
        return {"Cookie": f"duebell_session={cookie}", "Origin": ORIGIN}, token


def addresses(method: str, *, api: bool) -> list[str]:
    found = [one for one in routes() if isinstance(one, Route) and method in (one.methods or ())]
    return [one.path for one in found if one.path.startswith(API_PATH) is api and one.path not in FOR_ALL]


PAGES, FORMS = addresses("GET", api=False), addresses("POST", api=False)
READING, ACTING = addresses("GET", api=True), addresses("POST", api=True)


async def test_without_credentials_no_page_is_shown_and_nothing_is_done() -> None:
    visitor = Visitor(a_console(**ACCESS))
    assert min(len(PAGES), len(FORMS), len(READING), len(ACTING)) > 5
    for path in PAGES:
        answer = await visitor.ask("GET", path, params={"id": "1"})
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/log-in"), path
        part = await visitor.ask("GET", path, headers={"HX-Request": "true"})
        assert (part.status_code, part.content) == (401, b""), path
    for path in FORMS:
        assert (await visitor.ask("POST", path, headers={"Origin": ORIGIN})).status_code == 401, path
    for method, paths in (("GET", READING), ("POST", ACTING)):
        for path in paths:
            for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Basic {TOKEN}"}):
                assert (await visitor.ask(method, path, headers=headers)).status_code == 401, path
    for cookie in ("", "e30.x", "duebell_session=alice"):
        assert (await visitor.ask("GET", "/new", headers={"Cookie": f"duebell_session={cookie}"})).status_code == 303


async def test_a_form_of_another_site_or_session_does_nothing() -> None:
    visitor = Visitor(a_console(**ACCESS))
    headers, token = await visitor.session_of("alice")
    _, other = await visitor.session_of("alice")
    without = {"Cookie": headers["Cookie"]}
    refused = [
        ({**headers, "Origin": "http://evil.example"}, token),
        ({**headers, "Sec-Fetch-Site": "cross-site"}, token),
        ({**headers, "Sec-Fetch-Site": "same-site"}, token),
        (without, token),
        (headers, other),
        (headers, ""),
    ]
    for path in FORMS:
        for sent, with_token in refused:
            answer = await visitor.ask("POST", path, headers=sent, data={"form_token": with_token})
            assert (answer.status_code, "This form was not sent" in answer.text) == (403, True), path
    assert visitor.console.metrics.refused_forms._value.get() == len(FORMS) * len(refused)
    for path in ACTING:
        sent = {**headers, "Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"}
        assert (await visitor.ask("POST", path, headers=sent, content="{}")).status_code == 403, path
        plain = {**without, "Content-Type": "text/plain"}
        assert (await visitor.ask("POST", path, headers=plain, content="{}")).status_code == 415, path


async def test_a_viewer_reads_and_does_nothing() -> None:
    visitor = Visitor(a_console(**ACCESS))
    headers, token = await visitor.session_of("victor")
    for path in FORMS:
        if path not in NEED_NO_OPERATOR:
            answer = await visitor.ask("POST", path, headers=headers, data={"form_token": token})
            assert (answer.status_code, "Your role is viewer" in answer.text) == (403, True), path
    assert (await visitor.ask("GET", "/new", headers=headers)).status_code == 403
    for path in ACTING:
        if path not in NEED_NO_OPERATOR:
            answer = await visitor.ask("POST", path, headers={"Authorization": f"Bearer {TOKEN}r"}, json={})
            assert (answer.status_code, "viewer" in answer.text) == (403, True), path


async def test_a_session_is_that_of_a_user_who_still_has_the_password() -> None:
    visitor = Visitor(a_console(**ACCESS))
    headers, token = await visitor.session_of("alice")
    assert (await visitor.ask("GET", "/new", headers=headers)).status_code == 200
    out = await visitor.ask("POST", "/log-out", headers=headers, data={"form_token": token})
    assert 'duebell_session=""' in out.headers["set-cookie"]

    changed = Visitor(replace(visitor.console, users={"victor": visitor.console.users["victor"]}))
    assert (await changed.ask("GET", "/new", headers=headers)).status_code == 303
    alice = replace(visitor.console.users["alice"], password=a_cheap_hash("another"))
    changed = Visitor(replace(visitor.console, users={**visitor.console.users, "alice": alice}))
    assert (await changed.ask("GET", "/new", headers=headers)).status_code == 303
    for name in ("pauline", "robot", "stranger", ""):
        assert (await visitor.log_in(name)).status_code == 403, name


async def test_a_user_is_believed_from_a_trusted_proxy_alone() -> None:
    console = a_console(**ACCESS)
    proxy, elsewhere = Visitor(console, PROXY), Visitor(console)

    async def asks(visitor: Visitor, *names: str, **headers: str) -> int:
        given = [*(("X-Forwarded-User", name) for name in names), *headers.items()]
        return (await visitor.ask("GET", "/new", headers=given)).status_code

    assert await asks(proxy, "pauline") == 200
    assert await asks(elsewhere, "pauline") == 303
    for names in ((), ("stranger",), ("robot",), ("Pauline",), ("pauline", "pauline"), ("pauline,alice",)):
        assert await asks(proxy, *names) == 303, names
    # nginx passes on the password by which it knows the user.
    shown = {"X-Forwarded-User": "pauline", "Authorization": "Basic cGF1bGluZTp4"}
    bad = {"params": {"limit": "0"}, "headers": shown}
    assert (await proxy.ask("GET", f"{API_PATH}/schedules", **bad)).status_code == 400
    assert (await elsewhere.ask("GET", f"{API_PATH}/schedules", **bad)).status_code == 401
    assert (await proxy.ask("GET", f"{API_PATH}/schedules", headers={"Authorization": "Bearer x"})).status_code == 401


async def test_on_an_open_loopback_another_name_for_this_machine_is_not_taken() -> None:
    console = a_console(**ACCESS, console_open_on_loopback=True)
    for host, status in (("127.0.0.1:8080", 200), ("localhost", 200), ("[::1]:8080", 200), ("rebound.example", 303)):
        assert (await Visitor(console).ask("GET", "/new", headers={"Host": host})).status_code == status, host


async def test_who_guesses_passwords_waits_and_others_do_not() -> None:
    visitor = Visitor(a_console(**ACCESS))
    for _ in range(BURSTS[0]):
        assert (await visitor.log_in("alice", "wrong")).status_code == 403
    limited = await visitor.log_in("alice")
    assert (limited.status_code, "Too many wrong passwords" in limited.text) == (429, True)
    assert (await visitor.log_in("victor")).status_code == 303
    assert (await Visitor(visitor.console, "192.0.2.8").log_in("alice")).status_code == 303


@pytest.mark.parametrize("given", ["/duebell", ""])
async def test_behind_a_proxy_links_and_cookies_are_below_the_prefix(given: str) -> None:
    """The proxy keeps the prefix, or cuts it off."""
    console = a_console(**ACCESS, console_url="https://ops.example.com/duebell/")
    visitor, origin = Visitor(console, base_url="http://inside:8080"), {"Origin": "https://ops.example.com"}
    page = await visitor.ask("GET", f"{given}/log-in", params={"to": "/history"})
    assert (page.status_code, 'href="/duebell/static/' in page.text, 'href="/static/' in page.text) == (
        200,
        True,
        False,
    )
    form = {"name": "alice", "password": PASSWORD, "to": "/new"}
    answer = await visitor.ask("POST", f"{given}/log-in", data=form, headers=origin)
    assert (answer.status_code, answer.headers["location"]) == (303, "/duebell/new")
    cookie = SimpleCookie(answer.headers["set-cookie"])["duebell_session"]
    assert (cookie["path"], cookie["secure"], cookie["httponly"], cookie["samesite"]) == ("/duebell", True, True, "lax")
    assert (await visitor.ask("POST", f"{given}/log-in", data=form, headers={"Origin": ORIGIN})).status_code == 403
    asked = await visitor.ask("GET", f"{given}/history")
    assert asked.headers["location"] == "/duebell/log-in?to=%2Fhistory"


@pytest.mark.parametrize(
    "to", ["//evil.example", "/\\evil.example", "https://evil.example", "evil", "/\t/evil.example"]
)
async def test_a_log_in_leads_to_no_other_site(to: str) -> None:
    answer = await Visitor(a_console(**ACCESS)).log_in("alice", to=to)
    assert answer.headers["location"] == "/"
