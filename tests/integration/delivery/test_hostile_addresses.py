"""Several hundred URLs that lead inside, called by the real caller with its default rules, while listeners wait on
several addresses of loopback. Not one forbidden connection: none arrives at a listener, and none is even attempted, as
Python's own audit events tell.
"""

import asyncio
import re
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
import yarl

from delivery.attempt.retry import Answered, CallError, CallResult, Unanswered
from delivery.http.caller import Caller
from delivery.http.request import Request, prepare
from delivery.http.resolver import AddressInfo, system_lookup
from shared.contract.address_rules import AddressRules, parse_networks
from tests.hostile.urls import ODD_BUT_TAKEN, inside_urls, refused_urls
from tests.support.builders import a_delivery

LISTENING = ["127.0.0.1", "127.0.0.2", "127.127.127.127", "::1"]
PUBLIC = "93.184.215.14"
# What the test's resolver says, host by host. Other names are looked up as the machine would.
NAMES: dict[str, list[str]] = {
    "loopback.example": ["127.0.0.1"],
    "private.example": ["10.0.0.1"],
    "metadata.example": ["169.254.169.254"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "six-to-four.example": ["2002:7f00:1::1"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "mixed.example": ["127.0.0.1", PUBLIC],
    "mixed-last.example": [PUBLIC, "127.0.0.1"],
    "mixed-families.example": [PUBLIC, "::1"],
    "zero.example": ["0.0.0.0"],
    "scoped.example": ["fe80::1"],
    "zoned.example": ["fe80::1%lo"],
    "garbage.example": ["127.1"],
    "xn--n3h.example": ["127.0.0.2"],
    "xn--lcalhost-54a": ["127.0.0.1"],
}


def look_up(host: str, port: int) -> list[AddressInfo]:
    """Addresses as the machine gives them; names by the list above; nothing leaves the machine."""
    if host in NAMES:
        return [_info(address, port) for address in NAMES[host]]
    if re.fullmatch(r"[0-9a-fA-Fx.:%]+\.?", host) or host.lower().strip(".") == "localhost":
        return system_lookup(host, port)
    raise socket.gaierror(socket.EAI_NONAME, "no such name")


def _info(address: str, port: int) -> AddressInfo:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return (family, socket.SOCK_STREAM, 6, "", (address, port))


@dataclass(slots=True)
class Listeners:
    port: int
    connections: list[str] = field(default_factory=list)


@asynccontextmanager
async def listeners() -> AsyncIterator[Listeners]:
    """On every address of LISTENING, at one port; they answer like a good receiver."""
    waiting = Listeners(0)

    async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting.connections.append(str(writer.get_extra_info("sockname")))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    servers = []
    for address in LISTENING:
        server = await asyncio.start_server(connected, address, waiting.port)
        waiting.port = server.sockets[0].getsockname()[1]
        servers.append(server)
    try:
        yield waiting
    finally:
        for server in servers:
            server.close()


@dataclass(slots=True)
class Watch:
    """Collect every address that this process tries to connect to."""

    connects: list[Any] = field(default_factory=list)
    on: bool = False

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event == "socket.connect":
            self.connects.append(arguments[1])


WATCH = Watch()
_installed: list[bool] = []


@contextmanager
def watched_connects() -> Iterator[list[Any]]:
    if not _installed:
        sys.addaudithook(WATCH.heard)  # there is no way to take one away again
        _installed.append(True)
    WATCH.connects.clear()
    WATCH.on = True
    try:
        yield WATCH.connects
    finally:
        WATCH.on = False


async def attempt(caller: Caller, url: str, rules: AddressRules) -> CallResult:
    """As the dispatcher does it."""
    request = prepare(a_delivery(url=url, timeout_seconds=5.0), (), rules, datetime.now(UTC))
    return request if isinstance(request, Unanswered) else await caller.call(request)


async def attempt_unprepared(caller: Caller, url: str) -> CallResult | None:
    """Without the checks of `prepare`: the URL as yarl reads it."""
    try:
        target = yarl.URL(url)
    except ValueError:
        return None
    return await caller.call(Request(target, {}, b"{}", 5.0))


async def test_not_one_forbidden_connection_is_made_or_attempted() -> None:
    rules = AddressRules()
    async with listeners() as inside, Caller.opened(rules, 2.0, look_up) as caller:
        well_formed = inside_urls(inside.port)
        urls = well_formed + refused_urls(inside.port)
        assert len(urls) >= 250
        with watched_connects() as connects:
            for url in urls:
                result = await attempt(caller, url, rules)
                assert isinstance(result, Unanswered), url
                assert url not in well_formed or result.error is not CallError.UNEXPECTED, url
                assert not isinstance(await attempt_unprepared(caller, url), Answered), url
        assert connects == []
        assert inside.connections == []


async def test_the_listeners_and_the_watch_would_have_noticed() -> None:
    """The same with loopback open: or the test above would show nothing."""
    rules = AddressRules(parse_networks("127.0.0.0/8,::1/128"))
    async with listeners() as inside, Caller.opened(rules, 2.0, look_up) as caller:
        with watched_connects() as connects:
            for host in (
                "127.0.0.1",
                "127.127.127.127",
                "[::1]",
                "localhost",
                "127.0.0.2",
                "loopback.example",
                "xn--n3h.example",
            ):
                assert isinstance(await attempt(caller, f"http://{host}:{inside.port}/", rules), Answered), host
        assert len(inside.connections) == len(connects) == 7


@pytest.mark.parametrize("forbidden", ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1"])
async def test_a_name_that_rebinds_is_connected_to_where_it_was_allowed_and_never_elsewhere(forbidden: str) -> None:
    """First an address that is open, then one that is not, then by turns: what is looked up is what is connected to."""
    answers: list[str] = []

    def rebinding(_: str, port: int) -> list[AddressInfo]:
        answers.append("127.0.0.2" if len(answers) % 2 == 0 else forbidden)
        return [_info(answers[-1], port)]

    rules = AddressRules(parse_networks("127.0.0.2/32"))
    async with listeners() as inside:
        with watched_connects() as connects:
            for call in range(10):
                async with Caller.opened(rules, 2.0, rebinding) as caller:
                    result = await attempt(caller, f"http://rebinding.example:{inside.port}/", rules)
                expected = Answered if call % 2 == 0 else Unanswered
                assert isinstance(result, expected)
                assert len(answers) == call + 1, "one lookup for a call"
        assert connects == [("127.0.0.2", inside.port)] * 5
        assert len(inside.connections) == 5


async def test_a_redirect_to_the_inside_is_not_followed() -> None:
    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n" % inside.port)
        writer.close()

    rules = AddressRules(parse_networks("127.0.0.3/32"))
    async with listeners() as inside, Caller.opened(rules, 2.0, look_up) as caller:
        server = await asyncio.start_server(redirect, "127.0.0.3", 0)
        port = server.sockets[0].getsockname()[1]
        with watched_connects() as connects:
            result = await attempt(caller, f"http://127.0.0.3:{port}/", rules)
        server.close()
        assert isinstance(result, Answered)
        assert result.status == 307
        assert connects == [("127.0.0.3", port)]
        assert inside.connections == []


@pytest.mark.parametrize("url", ODD_BUT_TAKEN)
def test_whatever_may_be_scheduled_can_be_called(url: str) -> None:
    assert isinstance(prepare(a_delivery(url=url), (), AddressRules(), datetime.now(UTC)), Request)
