"""Certificates for tests, made with the system's openssl: one without an authority, and those of a private
authority.
"""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.eventually import PATIENCE


@dataclass(frozen=True, slots=True)
class Certificate:
    file: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority. A client that trusts `file` trusts the certificates that it issues."""

    file: Path
    key: Path

    @classmethod
    def made_in(cls, directory: Path, name: str = "authority") -> "Authority":
        made = _request(directory, name, f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign")
        return cls(made.file, made.key)

    def issue(self, name: str, *extensions: str) -> Certificate:
        """For a server: `subjectAltName=IP:127.0.0.1`."""
        not_an_authority = "basicConstraints=critical,CA:FALSE"
        options = [part for extension in (not_an_authority, *extensions) for part in ("-addext", extension)]
        signed_by = ["-CA", str(self.file), "-CAkey", str(self.key)]
        return _request(self.file.parent, name, f"/CN={name}", *signed_by, *options)


def self_signed(directory: Path) -> ssl.SSLContext:
    made = _request(directory, "certificate", "/CN=127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.file, made.key)
    return context


def _request(directory: Path, name: str, subject: str, *options: str) -> Certificate:
    made = Certificate(directory / f"{name}.pem", directory / f"{name}.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        [*command, "-keyout", made.key, "-out", made.file, "-days", "1", "-subj", subject, *options],
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    made.key.chmod(0o600)
    return made
