"""Signing secrets by name, and the Standard Webhooks signature.

Secrets come from a file or a variable of this service alone: JSON, each name with one secret or, while it is being
rotated, several. Their values are in no message, no table and no log line.
"""

import base64
import binascii
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from standardwebhooks import Webhook

from shared.runtime.logs import get_log

PREFIX = "whsec_"
# What the Standard Webhooks specification asks for.
SHORTEST, LONGEST = 24, 64
LOOK_AGAIN_SECONDS = 1.0

Signers = Mapping[str, Sequence[Webhook]]


def parse_secrets(text: str) -> dict[str, tuple[Webhook, ...]]:
    """{"name": "whsec_…"} or {"name": ["whsec_new…", "whsec_old…"]}. ValueError says what is wrong, without values."""
    try:
        content = json.loads(text)
    except ValueError:
        raise ValueError("is not JSON") from None
    if not isinstance(content, dict):
        raise ValueError('must be a JSON object such as {"billing": "whsec_…"}')  # noqa: TRY004
    return {name: _signers(name, value) for name, value in content.items()}


def _signers(name: str, value: object) -> tuple[Webhook, ...]:
    given = value if isinstance(value, list) else [value]
    secrets = [secret for secret in given if isinstance(secret, str)]
    if not secrets or len(secrets) < len(given):
        raise ValueError(f"{name}: must be a secret, or a list of secrets")
    return tuple(Webhook(_key(name, secret)) for secret in secrets)


def _key(name: str, secret: str) -> bytes:
    # Strictly: a lenient decoder would make some key of any text, and the receiver another.
    text = secret.removeprefix(PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{name}: a secret is {PREFIX} and base64") from None
    if not SHORTEST <= len(key) <= LONGEST:
        raise ValueError(f"{name}: a secret has {SHORTEST} to {LONGEST} bytes, this one {len(key)}")
    return key


def signature_headers(signers: Sequence[Webhook], key: str, body: bytes, now: datetime) -> dict[str, str]:
    """One signature for each secret, so that a receiver with the old or the new one can verify."""
    text = body.decode()
    return {
        "webhook-id": key,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signer.sign(key, now, text) for signer in signers),
    }


@dataclass(slots=True)
class Secrets:
    """What the variable says, and what the file says now: a secret that an operator adds is known within a second."""

    variable: Signers = field(default_factory=dict)
    file: Path | None = None
    _from_file: Signers = field(default_factory=dict)
    _seen: tuple[int, int, int] | None = None
    _look_again_at: float = 0.0

    @classmethod
    def load(cls, variable: str | None, file: Path | None) -> "Secrets":
        """ValueError, in one line that names the setting, for what cannot be read at start."""
        secrets = cls(file=file)
        try:
            secrets.variable = parse_secrets(variable) if variable else {}
        except ValueError as error:
            raise ValueError(f"WEBHOOK_SECRETS: {error}") from None
        try:
            secrets._read_file()
        except (ValueError, OSError) as error:
            raise ValueError(f"WEBHOOK_SECRETS_FILE: {_problem(error)}") from None
        return secrets

    def signers(self, name: str) -> Sequence[Webhook] | None:
        """None for a name that nobody has given a secret."""
        if time.monotonic() >= self._look_again_at:
            try:
                self._read_file()
            except (ValueError, OSError) as error:
                get_log().error("secrets_file_unreadable", problem=_problem(error), kept="the secrets read before")
        return self._from_file.get(name) or self.variable.get(name)

    def _read_file(self) -> None:
        self._look_again_at = time.monotonic() + LOOK_AGAIN_SECONDS
        if self.file is None:
            return
        stat = self.file.stat()
        seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if seen != self._seen:
            self._from_file = parse_secrets(self.file.read_text())
            self._seen = seen


def _problem(error: ValueError | OSError) -> str:
    return f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
