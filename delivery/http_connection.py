"""One HTTP/1.1 connection. A request goes out in one write, and what comes back is a value: the status and the start of
the answer, or why there is none. Nothing is raised, and nothing takes longer than its deadline.

llhttp, by way of httptools, reads the answers. What is here is what webhooks need: one request at a time, a status, one
header and a few kilobytes of the body. A general client makes objects of all the rest, which takes far longer than the
call itself.
"""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from delivery.outcomes import Answered, CallError, CallResult, Unanswered

ANSWER_CAP = 4096
# Status line and headers, as much as other clients allow.
HEAD_CAP = 64 * 1024
SWITCHING_PROTOCOLS = 101


class NoAnswer(Exception):
    """What comes is none, or none that anybody asked for: stops the parser."""


class HttpConnection(asyncio.Protocol):
    """`on_idle` is told when an answer was read to its end and the connection is as good as new."""

    def __init__(self, on_idle: Callable[["HttpConnection"], None]) -> None:
        self._on_idle = on_idle
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = self._new_parser()
        self._result: asyncio.Future[CallResult] | None = None  # None: nobody waits for an answer
        self._deadline = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        # The answer, as far as it has come.
        self._status: int | None = None
        self._retry_after: str | None = None
        self._body = b""
        self._size = 0
        self._complete = False
        self._lasts = True
        self.idle_since = 0.0

    @property
    def is_closed(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    @property
    def has_answered(self) -> bool:
        """A byte of it, at least."""
        return self._size > 0

    def exchange(self, request: bytes, deadline: float) -> "asyncio.Future[CallResult]":
        """Its answer, as far as it has come by the deadline. The status counts: what is missing of a body is not missed
        for long.
        """
        result: asyncio.Future[CallResult] = self._loop.create_future()
        if self._transport is None or self._transport.is_closing():
            result.set_result(Unanswered(CallError.CONNECTION_LOST))
            return result
        self._begin_answer()
        self._result = result
        self._set_alarm(deadline)
        self._transport.write(request)
        return result

    def abort(self) -> None:
        """At once, and whatever is under way with it."""
        if self._transport is not None:
            self._transport.abort()

    # The alarm of one call serves the next ones, too: it goes off too early for them, and is set again.

    def _set_alarm(self, deadline: float) -> None:
        self._deadline = deadline
        if self._alarm is not None and self._alarm.when() > deadline:
            self._alarm.cancel()
            self._alarm = None
        if self._alarm is None:
            self._alarm = self._loop.call_at(deadline, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        if self._result is None:
            return
        if self._loop.time() < self._deadline:
            self._set_alarm(self._deadline)
        else:
            self._end_with(CallError.TIMEOUT)

    # What the transport says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._result is None:
            self.abort()  # nobody asked
            return
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._status = SWITCHING_PROTOCOLS
            self._end_with(CallError.PROTOCOL)
        except httptools.HttpParserInvalidStatusError:  # 200x: by then the parser has read a 200
            self._end_with(CallError.PROTOCOL)
        except httptools.HttpParserError:
            self._take_status_of_broken_head()
            self._end_with(CallError.PROTOCOL)
        else:
            self._look_at_what_came()

    def connection_lost(self, _: Exception | None) -> None:
        self._end_with(CallError.CONNECTION_LOST)
        self._transport = None
        if self._alarm is not None:
            self._alarm.cancel()

    # What the parser finds.

    def _new_parser(self) -> httptools.HttpResponseParser:
        parser = httptools.HttpResponseParser(self)
        # As other clients do: what a 200 has in its other headers does not make it a failure, nor does an interim
        # answer that says that the connection will be closed.
        parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
            lenient_keep_alive=True,
        )
        return parser

    def on_message_begin(self) -> None:
        if self._complete:  # on the heels of the one that somebody asked for
            raise NoAnswer
        self._retry_after = None  # that of an interim answer is not the answer's

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 100:
            raise NoAnswer
        # The others of this kind say that the answer is still to come.
        self._status = status if status >= 200 or status == SWITCHING_PROTOCOLS else None

    def on_body(self, body: bytes) -> None:
        if len(self._body) < ANSWER_CAP:
            self._body += body

    def on_message_complete(self) -> None:
        self._complete = self._status is not None
        # The parser knows it now, and no longer afterwards. An interim answer has its say, too.
        self._lasts = self._lasts and self._parser.should_keep_alive()

    # What comes of it.

    def _begin_answer(self) -> None:
        if self._complete:
            self._parser = self._new_parser()  # one that was used would have the status of the answer before
        self._status = self._retry_after = None
        self._body = b""
        self._size = 0
        self._complete = False
        self._lasts = True

    def _look_at_what_came(self) -> None:
        if self._complete:
            reusable = self._lasts and self._all_is_sent()
            self._settle(self._answer())
            if reusable:
                self._on_idle(self)
            else:
                self.abort()
        elif len(self._body) >= ANSWER_CAP:
            self._settle(self._answer())
            self.abort()
        elif self._size > HEAD_CAP:  # a head without end, or trailers
            self._end_with(CallError.PROTOCOL)

    def _take_status_of_broken_head(self) -> None:
        """The receiver has spoken, though it gave two lengths, say: it did its work, and is not to be called again."""
        status = self._parser.get_status_code()
        if self._status is None and status >= 200:
            self._status = status

    def _all_is_sent(self) -> bool:
        """If not, it was answered before it was read: the rest would be taken for the next request."""
        return self._transport is not None and self._transport.get_write_buffer_size() == 0

    def _answer(self) -> Answered:
        return Answered(self._status or 0, self._retry_after, self._body[:ANSWER_CAP])

    def _end_with(self, error: CallError) -> None:
        """There will be no more of it: if its status has come, that is the answer."""
        self._settle(Unanswered(error) if self._status is None else self._answer())
        self.abort()

    def _settle(self, result: CallResult) -> None:
        future, self._result = self._result, None
        if future is not None and not future.done():
            future.set_result(result)
