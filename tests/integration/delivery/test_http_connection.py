"""One connection, byte for byte: what goes out, and when it is used again."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
import uvloop

from delivery.attempt.retry import Answered, CallError, CallResult, Unanswered
from delivery.http import caller as caller_module
from delivery.http.caller import KEEP_ALIVE_SECONDS, Caller
from delivery.http.request import Request, prepare, target_of
from shared.contract.address_rules import AddressRules, parse_networks
from tests.support.builders import a_delivery
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.raw_calls import (
    LOOPBACK,
    a_raw_server,
    a_request,
    answer_and_close,
    answer_each,
    call,
    called_twice,
    to_loopback,
)
from tests.support.receiver import a_receiver


async def test_the_address_and_the_header_names_go_out_as_they_were_written() -> None:
    lines: list[bytes] = []
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with a_raw_server(lambda reader, writer: answer_and_close(lines, answer, reader, writer)) as url:
        await call(f"{url}/%41%7E?sig=ab%2Fcd%2B%3D&x=%7E&to=http%3A%2F%2Fa")
    assert lines[0] == b"POST /hook/%41%7E?sig=ab%2Fcd%2B%3D&x=%7E&to=http%3A%2F%2Fa HTTP/1.1"
    assert lines[1] == f"Host: {url.split('/')[2]}".encode()
    assert b"X-Idempotency-Key: k" in lines
    assert b"Accept-Encoding: identity" in lines
    assert b"Content-Length: 2" in lines


async def test_no_header_is_sent_that_the_request_does_not_name() -> None:
    lines: list[bytes] = []
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with a_raw_server(lambda reader, writer: answer_and_close(lines, answer, reader, writer)) as url:
        request = prepare(a_delivery(url=url, headers={"X-Own": "1"}), None, LOOPBACK, datetime.now(UTC))
        assert isinstance(request, Request)
        async with Caller.opened(LOOPBACK, 10.0) as caller:
            await caller.call(request)
    names = sorted(line.split(b":")[0].decode() for line in lines[1:])
    assert names == sorted(["Host", "Content-Length", *request.headers])


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", 2),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 2),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", 2),
    ],
)
async def test_a_connection_is_used_again_if_its_answer_was_read_to_the_end(answer: bytes, connections: int) -> None:
    results, opened = await called_twice(answer)
    assert results == [Answered(200, None, b"ok")] * 2
    assert opened == connections


async def test_a_connection_that_was_idle_for_a_while_is_not_used_again() -> None:
    answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    assert await called_twice(answer, pause=KEEP_ALIVE_SECONDS + 0.1) == ([Answered(204, None, b"")] * 2, 2)


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        await writer.drain()

    async with a_raw_server(speak) as url:
        assert await call(url) == Answered(200, None, b"all of it")


async def test_headers_without_end_are_a_protocol_error() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: " + b"x" * 1000 + b"\r\n")
            await writer.drain()

    async with a_raw_server(talk) as url:
        assert await call(url) == Unanswered(CallError.PROTOCOL)


async def test_a_server_that_changes_the_protocol_has_answered() -> None:
    async def switch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello")
        await writer.drain()

    async with a_raw_server(switch) as url:
        assert await call(url) == Answered(101, None, b"")


async def test_a_header_of_two_lines_is_never_sent() -> None:
    async with a_receiver() as receiver, Caller.opened(LOOPBACK, 10.0) as caller:
        for value in ("a\r\nX-Smuggled: b", "a\nb", "a\0b"):
            request = Request(target_of(receiver.url), {"X-Own": value}, b"{}", 1.0)
            assert await caller.call(request) == Unanswered(CallError.UNEXPECTED)
        assert not receiver.calls


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_an_ipv6_address_is_called_like_any_other(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """On either loop: the services run on one, these tests on the other."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def run() -> CallResult:
        server = await asyncio.start_server(serve, "::1", 0)
        async with server:
            url = f"http://[::1]:{server.sockets[0].getsockname()[1]}/hook"
            return await call(url, rules=AddressRules(parse_networks("::1/128")))

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(run()) == Answered(200, None, b"ok")


async def test_a_good_certificate_is_no_hindrance(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer_each(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", reader, writer)

    authority = Authority.made_in(tmp_path)
    issued = authority.issue("receiver", "subjectAltName=IP:127.0.0.1")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(issued.file, issued.key)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    async with a_raw_server(serve, tls=server) as url:
        assert await call(url) == Answered(200, None, b"ok")
        assert await call(url.replace("127.0.0.1", "another.example"), lookup=to_loopback) == Unanswered(CallError.TLS)


async def test_a_connection_that_was_closed_while_it_was_kept_costs_no_attempt() -> None:
    """By a server that closes after each answer and does not say so."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    async with (
        a_raw_server(lambda reader, writer: answer_and_close([], answer, reader, writer)) as url,
        Caller.opened(LOOPBACK, 10.0) as caller,
    ):
        assert [await caller.call(a_request(url)) for _ in range(10)] == [Answered(200, None, b"ok")] * 10


async def test_a_server_that_never_answers_is_called_once_an_attempt() -> None:
    """One that was kept may be tried again afresh; a fresh one that is lost is an attempt that failed."""
    requests = 0

    async def answer_the_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        while True:
            await reader.readuntil(b"{}")
            requests += 1
            if requests > 1:
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()

    async with a_raw_server(answer_the_first) as url, Caller.opened(LOOPBACK, 10.0) as caller:
        assert await caller.call(a_request(url)) == Answered(200, None, b"ok")
        assert await caller.call(a_request(url)) == Unanswered(CallError.CONNECTION_LOST)
        assert requests == 3
        assert await caller.call(a_request(url)) == Unanswered(CallError.CONNECTION_LOST)
        assert requests == 4


async def test_half_an_answer_on_a_kept_connection_is_not_asked_for_again() -> None:
    requests = 0

    async def answer_the_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        while True:
            await reader.readuntil(b"{}")
            requests += 1
            if requests > 1:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()

    async with a_raw_server(answer_the_first) as url, Caller.opened(LOOPBACK, 10.0) as caller:
        assert await caller.call(a_request(url)) == Answered(200, None, b"ok")
        assert await caller.call(a_request(url)) == Unanswered(CallError.CONNECTION_LOST)
    assert requests == 2


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_no_more_than_so_many_connections_are_kept(
    loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_module, "MAX_IDLE_CONNECTIONS", 3)
    connected = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connected
        connected += 1
        try:
            await answer_each(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", reader, writer)
        finally:
            connected -= 1

    async def run() -> None:
        async with AsyncExitStack() as servers, Caller.opened(LOOPBACK, 10.0) as caller:
            urls = [await servers.enter_async_context(a_raw_server(serve)) for _ in range(8)]
            for _ in range(2):
                for url in urls:
                    assert await caller.call(a_request(url)) == Answered(200, None, b"ok")

            async def few_are_open() -> bool:
                return connected == 3

            await eventually(few_are_open)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


@pytest.mark.filterwarnings("ignore:Sending a large body")
async def test_a_receiver_that_stops_reading_does_not_keep_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call was cut at its deadline, and the rest of its body waits to be sent."""
    monkeypatch.setattr(caller_module, "MAX_UNREAD_SECONDS", 1)
    accepted = socket.create_server(("127.0.0.1", 0))
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    url = f"http://127.0.0.1:{accepted.getsockname()[1]}/"
    async with Caller.opened(LOOPBACK, 10.0) as caller:
        for _ in range(3):
            request = a_request(url, timeout=0.1, body=b"x" * 20_000_000)
            assert await caller.call(request) == Unanswered(CallError.TIMEOUT)

        async def all_are_closed() -> bool:
            return not caller.sockets.are_open(1)

        await eventually(all_are_closed)
    accepted.close()
