"""Answers, byte for byte: which of the odd ones count, and as what."""

import asyncio

import pytest

from delivery.attempt.retry import Answered, CallError, CallResult, Unanswered
from delivery.http.caller import Caller
from tests.support.eventually import PATIENCE
from tests.support.raw_calls import LOOPBACK, a_raw_server, a_request, answer_and_close, call, called_twice


async def test_a_reason_phrase_in_another_alphabet_is_no_failure() -> None:
    answer = b"HTTP/1.1 200 Accept\xe9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with a_raw_server(lambda reader, writer: answer_and_close([], answer, reader, writer)) as url:
        assert await call(url) == Answered(200, None, b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 2\nConnection: close\n\nok",
        b"HTTP/1.1 200 OK\r\nX-Long: a\r\n b\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX-Odd: a\x01b\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    ],
    ids=["lines end with LF", "a folded header", "a control character in a header"],
)
async def test_a_200_that_is_written_oddly_is_still_a_200(answer: bytes) -> None:
    async with a_raw_server(lambda reader, writer: answer_and_close([], answer, reader, writer)) as url:
        assert await call(url) == Answered(200, None, b"ok")


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 2\r\nContent-Length: 2",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2",
        b"Transfer-Encoding: identity\r\nContent-Length: 2",
        b"Content-Length: two",
        b"No Header: 1",
    ],
)
@pytest.mark.parametrize("status_line", [b"HTTP/1.1 200 OK", b"HTTP/1.1 200"])
async def test_an_answer_whose_head_contradicts_itself_is_a_protocol_error(status_line: bytes, head: bytes) -> None:
    """At once, and its connection is not used again: where the answer ends is unknown."""
    answer = status_line + b"\r\n" + head + b"\r\n\r\nok"
    assert await called_twice(answer) == ([Unanswered(CallError.PROTOCOL)] * 2, 2)


async def test_what_an_interim_answer_says_about_retries_is_not_the_answers() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nRetry-After: 3600\r\n\r\n"
    answer = early + b"HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with a_raw_server(lambda reader, writer: answer_and_close([], answer, reader, writer)) as url:
        assert await call(url) == Answered(503, None, b"")


NO_ANSWERS = [
    b"220 smtp.example.com ESMTP\r\n",
    b"<html>200 OK</html>",
    b"\x15\x03\x01\x00\x02\x02\x46",
    b"HTTP/7.1 200 OK\r\n\r\n",
    b"HTTP/1.1 two hundred\r\n\r\n",
    b"HTTP/1.1 200x\r\n\r\n",
    b"HTTP/1.1 2000 OK\r\n\r\n",
    b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
]


@pytest.mark.parametrize("nonsense", NO_ANSWERS)
@pytest.mark.parametrize("answers_before", [0, 1], ids=["at once", "after an answer"])
async def test_what_is_no_answer_is_a_protocol_error_whatever_came_before(nonsense: bytes, answers_before: int) -> None:
    """At once, though the server leaves the connection open."""
    said: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"{}")
            good = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            said.append(good if len(said) < answers_before else nonsense)
            writer.write(said[-1])
            await writer.drain()

    async with a_raw_server(serve) as url, Caller.opened(LOOPBACK, 1.0) as caller:
        for _ in range(answers_before):
            assert await caller.call(a_request(url)) == Answered(200, None, b"ok")
        assert await caller.call(a_request(url)) == Unanswered(CallError.PROTOCOL)
    assert len(said) == answers_before + 1, "called once"


async def test_trailers_without_end_are_cut_and_the_status_counts() -> None:
    """The connection is given up at once, whatever is left of the deadline. If they come together with the head, the
    whole answer is not HTTP: so the server lets the caller read the head first, for longer if the machine is busy.
    """
    results = []
    for pause in (0.2, 1.0, 5.0, 25.0):
        results.append(await _call_with_endless_trailers(pause))
        if results[-1] == Answered(200, None, b"ok"):
            break
        assert results[-1] == Unanswered(CallError.PROTOCOL)
    assert results[-1] == Answered(200, None, b"ok")


async def _call_with_endless_trailers(pause: float) -> CallResult:
    """The server sends the head and the body, and after the pause trailers until the caller hangs up."""
    hung_up = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
        await asyncio.sleep(pause)
        writer.write(b"0\r\nX-More: ")
        try:
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
        finally:
            hung_up.set()

    async with a_raw_server(talk) as url:
        calling = asyncio.create_task(call(url, timeout=pause + 2.0))
        await asyncio.wait_for(hung_up.wait(), PATIENCE)
        return await calling
