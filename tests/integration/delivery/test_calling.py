"""The call itself, against real sockets on loopback: every way in which an answer can come, or not."""

import asyncio
import gzip
import random
import socket
import time
from typing import Any

import pytest
from aiohttp import web

from delivery.attempt.retry import Answered, CallError, Unanswered
from delivery.http.caller import MAX_ANSWER_BYTES, Caller
from delivery.http.resolver import AddressInfo
from shared.contract.address_rules import AddressRules, parse_networks
from tests.support.certificates import self_signed
from tests.support.eventually import PATIENCE
from tests.support.raw_calls import LOOPBACK, a_raw_server, a_request, call
from tests.support.receiver import Call, Gate, a_receiver, answering


async def test_the_answer_has_the_status_the_body_and_retry_after() -> None:
    async with a_receiver(answering(503, headers={"Retry-After": "7"})) as receiver:
        assert await call(receiver.url) == Answered(503, "7", b"status 503")
        assert receiver.calls[0].body == b"{}"
        assert receiver.calls[0].request.method == "POST"


async def test_a_body_is_read_only_to_its_cap() -> None:
    async def endless(request: Call) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request.request)
        while True:
            await response.write(b"x" * 65536)

    async with a_receiver(endless) as receiver:
        assert await call(receiver.url) == Answered(200, None, b"x" * MAX_ANSWER_BYTES)


async def test_a_compressed_bomb_stays_compressed() -> None:
    bomb = gzip.compress(b"\0" * 30_000_000)

    async def answer(_: Call) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async with a_receiver(answer) as receiver:
        assert await call(receiver.url) == Answered(200, None, bomb[:MAX_ANSWER_BYTES])


async def test_a_redirect_is_not_followed() -> None:
    async with a_receiver() as elsewhere:
        async with a_receiver(answering(302, headers={"Location": elsewhere.url})) as receiver:
            result = await call(receiver.url)
        assert isinstance(result, Answered)
        assert result.status == 302
        assert not elsewhere.calls


async def test_cookies_are_not_kept() -> None:
    async with a_receiver(answering(200, headers={"Set-Cookie": "a=b"})) as receiver:
        async with Caller.opened(LOOPBACK, 10.0) as caller:
            for _ in range(2):
                await caller.call(a_request(receiver.url))
        assert [c.headers.get("Cookie") for c in receiver.calls] == [None, None]


async def test_proxies_in_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    async with a_receiver() as receiver:
        assert isinstance(await call(receiver.url), Answered)


async def test_a_server_that_never_answers_is_a_timeout() -> None:
    async with a_receiver(Gate()) as receiver:
        started = time.monotonic()
        assert await call(receiver.url, timeout=0.3) == Unanswered(CallError.TIMEOUT)
        assert time.monotonic() - started < PATIENCE


async def test_a_server_that_drips_its_headers_is_cut_at_the_total() -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with a_raw_server(drip) as url:
        started = time.monotonic()
        assert await call(url, timeout=0.5) == Unanswered(CallError.TIMEOUT)
        assert time.monotonic() - started < PATIENCE


async def test_a_server_that_drips_its_body_is_cut_at_the_total_and_its_status_counts() -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with a_raw_server(drip) as url:
        started = time.monotonic()
        result = await call(url, timeout=0.5)
        assert time.monotonic() - started < PATIENCE
        assert isinstance(result, Answered)
        assert result.status == 200
        assert 0 < len(result.body) < 4000, "as far as it had come"


async def test_a_server_that_reads_nothing_is_a_timeout() -> None:
    async def deaf(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    async with a_raw_server(deaf) as url, Caller.opened(LOOPBACK, 10.0) as caller:
        result = await caller.call(a_request(url, timeout=0.3, body=b"x" * 1_000_000))
    assert result == Unanswered(CallError.TIMEOUT)


async def test_a_refused_connection_is_a_connect_error() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, but no process listens
        assert await call(f"http://127.0.0.1:{held.getsockname()[1]}/") == Unanswered(CallError.CONNECT)


async def test_a_server_that_hangs_up_lost_the_connection() -> None:
    async def hang_up(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with a_raw_server(hang_up) as url:
        assert await call(url) == Unanswered(CallError.CONNECTION_LOST)


async def test_a_reset_lost_the_connection() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async with a_raw_server(reset) as url:
        assert await call(url) == Unanswered(CallError.CONNECTION_LOST)


@pytest.mark.parametrize("answer", [b"220 smtp.example.com ESMTP\r\n", b"HTTP/1.1 two hundred\r\n", b"\x15\x03\x01"])
async def test_an_answer_that_is_not_http_is_a_protocol_error(answer: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer + b"\r\n\r\n")
        await writer.drain()

    async with a_raw_server(speak) as url:
        result = await call(url)
    assert result in (Unanswered(CallError.PROTOCOL), Unanswered(CallError.CONNECTION_LOST))


async def test_a_certificate_without_a_trusted_issuer_is_a_tls_error(tmp_path: Any) -> None:
    async def nothing(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        pass

    async with a_raw_server(nothing, tls=self_signed(tmp_path)) as url:
        assert await call(url) == Unanswered(CallError.TLS)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "localhost"])
async def test_a_forbidden_address_is_called_that(host: str) -> None:
    result = await call(f"http://{host}:9/", rules=AddressRules())
    assert isinstance(result, Unanswered)
    assert result.error is CallError.FORBIDDEN_ADDRESS
    assert result.detail
    assert result.detail.endswith(" is not a public address")


async def test_one_forbidden_answer_among_public_ones_is_one_too_many() -> None:
    def mixed(host: str, port: int) -> list[AddressInfo]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ("93.184.215.14", "10.0.0.1")]

    result = await call("http://mixed.example/", rules=AddressRules(), lookup=mixed)
    assert result == Unanswered(CallError.FORBIDDEN_ADDRESS, "10.0.0.1 is not a public address")


async def test_a_name_that_changes_its_mind_gains_nothing() -> None:
    """DNS rebinding: the first lookup gives an allowed address, every later one a forbidden one. There is one lookup
    per connection, and the connection goes to the address that was checked.
    """
    lookups: list[str] = []

    def rebinding(host: str, port: int) -> list[AddressInfo]:
        lookups.append(host)
        ip = "127.0.0.1" if len(lookups) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))]

    only_one = AddressRules(parse_networks("127.0.0.1/32"))
    async with a_receiver() as receiver, Caller.opened(only_one, 1.0, rebinding) as caller:
        url = f"http://rebinding.example:{receiver.port}/"
        assert isinstance(await caller.call(a_request(url)), Answered)
        assert receiver.calls[0].headers["Host"] == f"rebinding.example:{receiver.port}"
        assert len(lookups) == 1
    async with Caller.opened(only_one, 1.0, rebinding) as caller:
        result = await caller.call(a_request(url))
        assert result == Unanswered(CallError.FORBIDDEN_ADDRESS, "127.0.0.2 is not a public address")


async def test_cancelled_and_timed_out_calls_do_not_wear_the_pool_out() -> None:
    """Harsh churn against a slow server, then a healthy one must still be reached at once."""

    async def slow(_: Call) -> web.Response:
        await asyncio.sleep(random.uniform(0, 0.06))
        return web.Response(text="ok")

    async with a_receiver(slow) as receiver, Caller.opened(LOOPBACK, 10.0) as caller:

        async def churn(number: int) -> None:
            for _ in range(25):
                task = asyncio.create_task(caller.call(a_request(receiver.url, timeout=random.uniform(0.001, 0.06))))
                if number % 2:
                    await asyncio.sleep(random.uniform(0, 0.03))
                    task.cancel()
                await asyncio.wait({task})

        await asyncio.gather(*(churn(number) for number in range(40)))
        results = await asyncio.gather(*(caller.call(a_request(receiver.url)) for _ in range(50)))
    assert {type(result) for result in results} == {Answered}
