"""Names of receivers: looked up once for many calls, and a lookup that hangs delays no other."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from delivery.attempt.retry import Answered, CallError, Unanswered
from delivery.http import resolver
from delivery.http.caller import Caller
from delivery.http.resolver import AddressInfo, Lookup
from tests.support.eventually import PATIENCE
from tests.support.raw_calls import LOOPBACK, a_request, call, to_loopback
from tests.support.receiver import a_receiver


async def test_a_name_that_does_not_exist_is_a_dns_error() -> None:
    def no_address(host: str, port: int) -> list[AddressInfo]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert await call("http://nowhere.invalid/", lookup=no_address) == Unanswered(CallError.DNS)


async def test_a_lookup_that_hangs_is_a_dns_error_and_delays_no_other() -> None:
    with a_lookup_that_hangs_below("hangs.example") as lookup:
        async with a_receiver() as receiver, Caller.opened(LOOPBACK, 5.0, lookup) as caller:
            hanging = [caller.call(a_request(f"http://hangs.example:{receiver.port}/")) for _ in range(50)]
            others = [caller.call(a_request(f"http://n{n}.example:{receiver.port}/")) for n in range(50)]
            other_results = asyncio.gather(*others)
            hanging_results = asyncio.gather(*hanging)
            assert {type(result) for result in await other_results} == {Answered}
            assert set(await hanging_results) == {Unanswered(CallError.DNS)}


@contextmanager
def a_lookup_that_hangs_below(domain: str) -> Iterator[Lookup]:
    """Until the end of the test: names of other domains are found at once."""
    end = threading.Event()

    def look_up(host: str, port: int) -> list[AddressInfo]:
        if host.endswith(domain):
            end.wait(PATIENCE)
        return to_loopback(host, port)

    try:
        yield look_up
    finally:
        end.set()


async def test_calls_to_one_name_share_a_lookup_and_keep_their_ports() -> None:
    asked = 0
    both_wait = threading.Event()

    def look_up(host: str, port: int) -> list[AddressInfo]:
        nonlocal asked
        asked += 1
        both_wait.wait(5)
        return to_loopback(host, port)

    async with a_receiver() as first, a_receiver() as second, Caller.opened(LOOPBACK, 5.0, look_up) as caller:
        calls = [caller.call(a_request(f"http://shop.example:{receiver.port}/")) for receiver in (first, second)]
        results = asyncio.gather(*calls)
        await asyncio.sleep(0)  # both have begun
        both_wait.set()
        assert {type(result) for result in await results} == {Answered}
        assert [len(first.calls), len(second.calls)] == [1, 1]
    assert asked == 1


async def test_when_all_lookups_hang_the_others_are_not_charged_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "MAX_LOOKUPS", 3)
    with a_lookup_that_hangs_below(".hangs.example") as look_up:
        async with a_receiver() as receiver, Caller.opened(LOOPBACK, 0.2, look_up) as caller:
            hanging = [caller.call(a_request(f"http://n{n}.hangs.example/")) for n in range(3)]
            assert set(await asyncio.gather(*hanging)) == {Unanswered(CallError.DNS)}
            url = f"http://innocent.test:{receiver.port}/"
            assert await caller.call(a_request(url)) == Unanswered(CallError.TOO_MANY_LOOKUPS)


async def test_names_of_one_domain_that_hang_leave_lookups_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "MAX_HANGING_LOOKUPS_PER_DOMAIN", 2)
    with a_lookup_that_hangs_below(".hangs.example") as look_up:
        async with a_receiver() as receiver, Caller.opened(LOOPBACK, 0.2, look_up) as caller:
            hanging = [caller.call(a_request(f"http://n{n}.hangs.hangs.example/")) for n in range(5)]
            assert set(await asyncio.gather(*hanging)) == {Unanswered(CallError.DNS)}, "none was late when they began"
            one_more = a_request("http://more.hangs.example/")
            assert await caller.call(one_more) == Unanswered(CallError.TOO_MANY_LOOKUPS)
            others = [caller.call(a_request(f"http://n{n}.test:{receiver.port}/")) for n in range(5)]
            assert {type(result) for result in await asyncio.gather(*others)} == {Answered}


async def test_when_no_thread_can_start_no_attempt_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with a_receiver() as receiver, Caller.opened(LOOPBACK, 1.0, to_loopback) as caller:
        request = a_request(f"http://shop.example:{receiver.port}/")
        with monkeypatch.context() as without_threads:
            without_threads.setattr(threading.Thread, "start", no_more)
            assert await caller.call(request) == Unanswered(CallError.TOO_MANY_LOOKUPS)
        assert isinstance(await caller.call(request), Answered)
