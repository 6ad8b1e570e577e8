"""Calls through an egress proxy: what it is asked for, what is still refused, and what is kept from whom."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from delivery.attempt.retry import Answered, CallError, CallResult, Unanswered
from delivery.http.caller import Caller
from delivery.http.connection_settings import parse_proxy
from delivery.http.resolver import AddressInfo
from shared.contract.address_rules import AddressRules
from tests.hostile.urls import SPELT_ODDLY
from tests.support.certificates import Authority
from tests.support.proxies import a_proxy
from tests.support.raw_calls import a_raw_server, a_request, answer_and_close
from tests.support.receiver import a_receiver

PUBLIC_ONLY = AddressRules()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def no_lookup(host: str, port: int) -> list[AddressInfo]:
    raise AssertionError(f"{host} was looked up")


async def call(address: str, url: str, rules: AddressRules = PUBLIC_ONLY) -> CallResult:
    async with Caller.opened(rules, 1.0, no_lookup, proxy=parse_proxy(address)) as caller:
        return await caller.call(a_request(url))


@asynccontextmanager
async def a_tls_receiver(directory: Path, lines: list[bytes]) -> AsyncIterator[int]:
    authority = Authority.made_in(directory)
    context = server_context(authority, "subjectAltName=DNS:shop.example")
    async with a_raw_server(lambda r, w: answer_and_close(lines, ANSWER, r, w), tls=context) as url:
        yield int(url.split(":")[2].split("/")[0])


def server_context(authority: Authority, name: str) -> ssl.SSLContext:
    issued = authority.issue("server", name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.file, issued.key)
    return context


async def test_a_plain_call_asks_the_proxy_for_the_whole_url_as_it_was_scheduled() -> None:
    async with a_receiver() as receiver, a_proxy() as (proxy, address):
        url = f"http://shop.example:{receiver.port}/a%2Fb?sig=%2B"
        assert await call(address, url) == Answered(200, None, b"status 200")
        assert proxy.asked[0].startswith(f"POST {url} HTTP/1.1\r\nHost: shop.example:{receiver.port}\r\n")
        assert receiver.calls[0].path == "/a%2Fb?sig=%2B"


@pytest.mark.parametrize(
    ("loop", "scheme"),
    [(asyncio.new_event_loop, "http"), (uvloop.new_event_loop, "http"), (uvloop.new_event_loop, "https")],
)
def test_a_tls_call_goes_through_a_tunnel_and_the_receivers_certificate_is_verified(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    loop: Callable[[], asyncio.AbstractEventLoop],
    scheme: str,
) -> None:
    """Also if the proxy itself speaks TLS, on the loop that the services use: in asyncio's own, TLS within TLS ends in
    a TypeError when a certificate is refused (Python 3.11.7).
    """
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    lines: list[bytes] = []

    async def run() -> tuple[list[CallResult], list[str]]:
        async with a_tls_receiver(tmp_path, lines) as port:
            authority = Authority(tmp_path / "authority.pem", tmp_path / "authority.key")
            tls = server_context(authority, "subjectAltName=IP:127.0.0.1") if scheme == "https" else None
            async with a_proxy("duebell:pass", tls=tls) as (proxy, address):
                results = [await call(address, f"https://{name}.example:{port}/hook") for name in ("shop", "other")]
                return results, [head.split("\r\n")[0].replace(str(port), "PORT") for head in proxy.asked]

    with asyncio.Runner(loop_factory=loop) as runner:
        results, asked = runner.run(run())
    assert results == [Answered(200, None, b"ok"), Unanswered(CallError.TLS)]
    assert asked == ["CONNECT shop.example:PORT HTTP/1.1", "CONNECT other.example:PORT HTTP/1.1"]
    assert not [line for line in lines if line.lower().startswith(b"proxy-")], "the password is the proxy's alone"


INSIDE = [
    "127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "[fd00::1]", "localhost", "LOCALHOST.",
    "a.localhost", "intranet", "metadata.google.internal", "printer.local", "localhost.localdomain", *SPELT_ODDLY,
]  # fmt: skip


async def test_what_leads_inside_by_its_name_is_not_asked_for() -> None:
    async with a_proxy() as (proxy, address):
        async with Caller.opened(PUBLIC_ONLY, 1.0, no_lookup, proxy=parse_proxy(address)) as caller:
            for host in INSIDE:
                for scheme in ("http", "https"):
                    result = await caller.call(a_request(f"{scheme}://{host}:81/"))
                    assert isinstance(result, Unanswered), host
                    assert result.error is CallError.FORBIDDEN_ADDRESS, host
        assert proxy.asked == []


async def test_a_wrong_password_is_no_answer_of_the_receiver() -> None:
    async with a_proxy("duebell:right") as (proxy, address):
        for scheme in ("http", "https"):
            wrong = address.replace("right", "wrong")
            assert await call(wrong, f"{scheme}://shop.example:81/") == Unanswered(CallError.CONNECT)
        assert len(proxy.asked) == 2


async def test_a_proxy_that_refuses_or_is_gone_is_a_connect_error() -> None:
    async with a_proxy(refusal=b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as (_, address):
        assert await call(address, "https://shop.example/") == Unanswered(CallError.CONNECT)
    assert await call(address, "https://shop.example/") == Unanswered(CallError.CONNECT)
    assert await call(address, "http://shop.example/") == Unanswered(CallError.CONNECT)


async def test_many_calls_share_the_connections_of_a_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = server_context(Authority.made_in(tmp_path), "subjectAltName=DNS:shop.example")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"{}")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with a_raw_server(serve, tls=context) as server, a_proxy("a:b") as (proxy, address):
        url = server.replace("127.0.0.1", "shop.example")
        async with Caller.opened(PUBLIC_ONLY, 1.0, no_lookup, proxy=parse_proxy(address)) as caller:
            results = [await caller.call(a_request(url)) for _ in range(5)]
    assert results == [Answered(200, None, b"ok")] * 5
    assert len(proxy.asked) == 1
