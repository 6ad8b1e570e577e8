"""A receiver that demands a certificate: it is called with the one that the operator gave, and not without."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from delivery.attempt.retry import Answered, CallError, CallResult, Unanswered
from delivery.http.caller import Caller
from delivery.http.connection_settings import tls_context
from tests.support.certificates import Authority, Certificate
from tests.support.raw_calls import LOOPBACK, a_raw_server, a_request


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """It vouches for the receiver, and for its callers."""
    authority = Authority.made_in(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    return authority


@pytest.fixture
def own(authority: Authority) -> Certificate:
    return authority.issue("duebell", "extendedKeyUsage=clientAuth")


@asynccontextmanager
async def a_demanding_receiver(authority: Authority, callers: list[object]) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        callers.append(writer.get_extra_info("peercert")["subject"])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()

    issued = authority.issue("receiver", "subjectAltName=IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.file, issued.key)
    context.load_verify_locations(authority.file)
    context.verify_mode = ssl.CERT_REQUIRED
    async with a_raw_server(serve, tls=context) as url:
        yield url


async def call(url: str, tls: ssl.SSLContext) -> CallResult:
    async with Caller.opened(LOOPBACK, 1.0, tls=tls) as caller:
        return await caller.call(a_request(url))


async def test_the_receiver_sees_the_certificate(authority: Authority, own: Certificate) -> None:
    callers: list[object] = []
    async with a_demanding_receiver(authority, callers) as url:
        assert await call(url, tls_context(own.file, own.key)) == Answered(200, None, b"ok")
    assert callers == [((("commonName", "duebell"),),)]


async def test_key_and_certificate_may_be_in_one_file(authority: Authority, own: Certificate, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_text(own.file.read_text() + own.key.read_text())
    async with a_demanding_receiver(authority, []) as url:
        assert await call(url, tls_context(both, None)) == Answered(200, None, b"ok")


async def test_without_a_certificate_or_with_a_strangers_there_is_no_answer(
    authority: Authority, tmp_path: Path
) -> None:
    """With TLS 1.3 the receiver's refusal comes after the handshake, and looks like a lost connection."""
    (tmp_path / "other").mkdir()
    stranger = Authority.made_in(tmp_path / "other").issue("stranger", "extendedKeyUsage=clientAuth")
    refused = (Unanswered(CallError.TLS), Unanswered(CallError.CONNECTION_LOST))
    callers: list[object] = []
    async with a_demanding_receiver(authority, callers) as url:
        assert await call(url, tls_context(None, None)) in refused
        assert await call(url, tls_context(stranger.file, stranger.key)) in refused
    assert callers == []


def test_what_is_wrong_with_the_files_is_said_with_the_setting(
    authority: Authority, own: Certificate, tmp_path: Path
) -> None:
    other = authority.issue("other")
    encrypted = tmp_path / "encrypted.key"
    command = ["openssl", "ec", "-in", str(own.key), "-aes256", "-passout", "pass:secret", "-out", str(encrypted)]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for certificate, key, says in (
        (None, own.key, "WEBHOOK_CLIENT_KEY: is set, and WEBHOOK_CLIENT_CERT is not"),
        (tmp_path / "none.pem", own.key, "WEBHOOK_CLIENT_CERT: cannot be read: No such file or directory"),
        (own.file, tmp_path / "none.key", "WEBHOOK_CLIENT_KEY: cannot be read: No such file or directory"),
        (own.key, own.key, "WEBHOOK_CLIENT_CERT: holds no certificate in PEM"),
        (own.file, None, "WEBHOOK_CLIENT_CERT: holds no private key in PEM; name its file in WEBHOOK_CLIENT_KEY"),
        (own.file, own.file, "WEBHOOK_CLIENT_KEY: holds no private key in PEM"),
        (own.file, other.key, "WEBHOOK_CLIENT_KEY: the key is not that of the certificate"),
        (own.file, encrypted, "WEBHOOK_CLIENT_KEY: the key is encrypted; give one that is not"),
        (broken, own.key, "WEBHOOK_CLIENT_CERT: the certificate or its key cannot be read"),
    ):
        with pytest.raises(ValueError, match=f"^{says}"):
            tls_context(certificate, key)
