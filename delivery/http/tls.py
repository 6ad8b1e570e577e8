"""TLS towards receivers: their certificates are verified, and Duebell's own is shown to those that ask for one."""

import ssl
from pathlib import Path


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """ValueError names the setting that is wrong. Both files are PEM; the key may be in the certificate's file."""
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

    def refuse() -> str:  # without this, OpenSSL would ask for a password on the terminal
        raise ValueError(f"{key_setting}: the key is encrypted; give one that is not")

    try:
        context.load_cert_chain(certificate, key, refuse)
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
