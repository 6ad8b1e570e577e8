"""One connection, byte for byte: what goes out, and when it is used again."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from delivery import connections
from delivery.addresses import AddressRules, parse_networks
from delivery.calling import Caller
from delivery.connections import KEEP_ALIVE_SECONDS
from delivery.outcomes import Answered, CallError, CallResult, Unanswered
from delivery.request import Request, target_of
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
    assert b"X-Idempotency-Key: k" in lines
    assert b"Accept-Encoding: identity" in lines
    assert sum(line.lower().startswith(b"content-length:") for line in lines) == 1
    assert sum(line.lower().startswith(b"host:") for line in lines) == 1


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


async def test_a_connection_that_nobody_used_for_a_while_is_not_used_again() -> None:
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
    async with a_receiver() as receiver, Caller.opened(LOOPBACK, 1.0) as caller:
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
        Caller.opened(LOOPBACK, 1.0) as caller,
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

    async with a_raw_server(answer_the_first) as url, Caller.opened(LOOPBACK, 1.0) as caller:
        assert await caller.call(a_request(url)) == Answered(200, None, b"ok")
        assert await caller.call(a_request(url)) == Unanswered(CallError.CONNECTION_LOST)
        assert requests == 3
        assert await caller.call(a_request(url)) == Unanswered(CallError.CONNECTION_LOST)
        assert requests == 4


async def test_no_more_than_so_many_connections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_KEPT", 1)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    closed: list[str] = []

    async def serve(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(answer)
        await reader.read()
        closed.append(name)

    async with (
        a_raw_server(lambda reader, writer: serve("first", reader, writer)) as first,
        a_raw_server(lambda reader, writer: serve("second", reader, writer)) as second,
        Caller.opened(LOOPBACK, 1.0) as caller,
    ):
        await caller.call(a_request(first))
        await caller.call(a_request(second))

        async def one_is_closed() -> bool:
            return bool(closed)

        await eventually(one_is_closed)
        assert closed == ["second"]
