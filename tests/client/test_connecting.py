"""A URL that is wrong is told at once; a broker that is away is waited for."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stack.ports import free_port
from stack.roles import APPLICATION
from tests.support.certificates import self_signed
from tests.support.client_program import Installed
from tests.support.deaf_server import Deaf
from tests.support.eventually import SLOWEST_MACHINE
from tests.support.stores import Stores

SCRIPT = Path(__file__).parent / "scripts" / "connecting.py"
TIMEOUT = 60.0


def application_url(stores: Stores) -> str:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker, which has no roles")
    return stores.rabbitmq.url_of(APPLICATION)


async def refusals(installed: Installed, url: str, timeout: float = TIMEOUT) -> list[tuple[str, str]]:
    """Of the asynchronous and of the synchronous client."""
    reports = await installed.run(SCRIPT, url, f"{timeout}")
    assert len(reports) == 2
    if timeout == TIMEOUT:
        assert all(report["seconds"] < 5 * SLOWEST_MACHINE < TIMEOUT for report in reports)
    return [(report["error"], report["text"]) for report in reports]


async def test_a_wrong_password_is_told_at_once(installed: Installed, stores: Stores) -> None:
    url = application_url(stores)
    for error, text in await refusals(installed, url.replace(urlsplit(url).password or "", "not-this-one")):
        assert error == "NotAllowed"
        assert text.startswith("the broker refuses user 'my-app', or its password: ACCESS_REFUSED")


async def test_a_virtual_host_that_is_missing_is_told_at_once(installed: Installed, stores: Stores) -> None:
    for error, text in await refusals(installed, f"{application_url(stores).rstrip('/')}/no%20where"):
        assert error == "NotAllowed"
        assert text.startswith("the broker refuses the virtual host 'no where' to user 'my-app': it does not exist")


async def test_a_host_that_has_no_such_name_is_told_at_once(installed: Installed) -> None:
    for error, text in await refusals(installed, "amqp://guest:guest@no-such-host.invalid:5672/"):
        assert error == "Unreachable"
        assert text.startswith("no host has the name 'no-such-host.invalid'")


async def test_tls_that_cannot_be_is_told_at_once(installed: Installed, stores: Stores, tmp_path: Path) -> None:
    async def end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    plain = application_url(stores).replace("amqp://", "amqps://")
    async with await asyncio.start_server(end, "127.0.0.1", ssl=self_signed(tmp_path)) as unknown_to_all:
        port = unknown_to_all.sockets[0].getsockname()[1]
        for url, error, says in (
            (plain, "Unreachable", "'127.0.0.1' speaks no TLS at this port"),
            (f"amqps://a:b@127.0.0.1:{port}/", "Unreachable", "the certificate of '127.0.0.1' cannot be trusted: self"),
            (f"{plain}?cafile={tmp_path}/none.pem", "InvalidURL", "url: there is no file of the name that cafile"),
        ):
            for told in await refusals(installed, url):
                assert told[0] == error, told
                assert told[1].startswith(says), told


async def test_a_host_that_is_away_or_says_nothing_is_left_for_the_next(installed: Installed, stores: Stores) -> None:
    url = application_url(stores)
    async with Deaf().listening() as deaf:
        several = url.replace("@", f"@no-such-host.invalid,127.0.0.1:{free_port()},{deaf.address},")
        assert await installed.run(SCRIPT, several, f"{TIMEOUT}") == [], "it reports errors alone"
        assert deaf.connections == 2, "the asynchronous and the synchronous client have tried it"


async def test_a_broker_that_is_away_is_waited_for_up_to_the_timeout(installed: Installed) -> None:
    for error, text in await refusals(installed, f"amqp://guest:guest@127.0.0.1:{free_port()}/", timeout=1.5):
        assert error == "Unreachable"
        assert text.startswith("no connection within 1.5 s: ")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "(is AMQP_URL set?)"),
        ("localhost:5672", "must start with amqp:// or amqps://"),
        ("amqp://guest:secret@", "names no host"),
        ("amqp://guest:secret@a:5672,/", "names no host"),
        ("amqp://guest:a/secret@localhost:5672/", "write / @ : # ? and % as %XX"),
    ],
)
async def test_a_url_that_cannot_be_read_is_refused_and_not_quoted(
    python: Path, tmp_path: Path, url: str, words: str
) -> None:
    reports = await Installed(python, {}, tmp_path).run(SCRIPT, url, "30")
    assert [report["error"] for report in reports] == ["InvalidURL", "InvalidURL"]
    for report in reports:
        assert words in report["text"]
        assert "secret" not in report["text"]
