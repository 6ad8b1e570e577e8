"""What an operator sets about the connections of webhook calls: an egress proxy and a client certificate.

Receivers' certificates are always verified. Both parsers raise ValueError with a text for the operator.
"""

import ssl
from dataclasses import dataclass, field
from pathlib import Path

import yarl
from aiohttp import encode_basic_auth

EXAMPLE_PROXY = "http://user:password@proxy.example:3128"


@dataclass(frozen=True, slots=True)
class Proxy:
    """The egress proxy of all webhook calls.

    The password is in neither the URL nor the repr, because aiohttp's own messages show the URL.
    """

    url: yarl.URL
    headers: dict[str, str] = field(repr=False)


def parse_proxy(text: str) -> Proxy | None:
    """Read the value of WEBHOOK_PROXY; an empty text means no proxy. The ValueError does not quote the text, which may
    hold a password.
    """
    if not text:
        return None
    try:
        url = yarl.URL(text)
        usable = url.scheme in {"http", "https"} and url.host and url.explicit_port
    except ValueError:
        usable = False
    if not usable or url.raw_path_qs != "/" or url.raw_fragment:
        raise ValueError(f"is not an address such as {EXAMPLE_PROXY}")
    if url.raw_user is None and url.raw_password is None:
        return Proxy(url, {})
    return Proxy(url.with_user(None), {"Proxy-Authorization": encode_basic_auth(url.user or "", url.password or "")})


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Build the TLS context of webhook calls, with the client certificate if one is set. Both files are PEM; the key
    may be in the certificate's file. The ValueError names the setting that is wrong.
    """
    context = ssl.create_default_context()
    if certificate is None:
        if key is not None:
            raise ValueError("WEBHOOK_CLIENT_KEY: is set, and WEBHOOK_CLIENT_CERT is not")
        return context
    if "-----BEGIN CERTIFICATE-----" not in _read("WEBHOOK_CLIENT_CERT", certificate):
        raise ValueError("WEBHOOK_CLIENT_CERT: holds no certificate in PEM")
    key_setting = "WEBHOOK_CLIENT_CERT" if key is None else "WEBHOOK_CLIENT_KEY"
    if "PRIVATE KEY-----" not in _read(key_setting, key or certificate):
        hint = "; name its file in WEBHOOK_CLIENT_KEY" if key is None else ""
        raise ValueError(f"{key_setting}: holds no private key in PEM{hint}")

    def refuse_password() -> str:  # without this function, OpenSSL would ask for a password on the terminal
        raise ValueError(f"{key_setting}: the key is encrypted; give one that is not")

    try:
        context.load_cert_chain(certificate, key, refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ValueError(f"{key_setting}: the key is not that of the certificate") from None
        reason = error.reason or "not PEM"
        raise ValueError(f"WEBHOOK_CLIENT_CERT: the certificate or its key cannot be read: {reason}") from None
    return context


def _read(setting: str, file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError as error:
        raise ValueError(f"{setting}: cannot be read: {error.strerror}") from None
