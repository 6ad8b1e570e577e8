"""Signing secrets by name, and the Standard Webhooks signature.

Secrets come from a file and a variable of the delivery service alone. Both are JSON objects that give each name one
secret or, while the secret is being rotated, several. The values are in no message, no table and no log line.
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
# The limits of the Standard Webhooks specification.
MIN_KEY_BYTES, MAX_KEY_BYTES = 24, 64
FILE_CHECK_SECONDS = 1.0
# A file that stays unreadable is said again after this long.
REPEAT_SECONDS = 60.0

Signers = Mapping[str, Sequence[Webhook]]


def parse_secrets(text: str) -> dict[str, tuple[Webhook, ...]]:
    """Read JSON such as {"name": "whsec_…"} or {"name": ["whsec_new…", "whsec_old…"]}.

    ValueError says what is wrong, without the values of secrets.
    """
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
    # A lenient decoder would make a key of any text, and the receiver's decoder might make another one.
    text = secret.removeprefix(PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{name}: a secret is {PREFIX} and base64") from None
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise ValueError(f"{name}: a secret has {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes, this one {len(key)}")
    return key


def signature_headers(signers: Sequence[Webhook], key: str, body: bytes, now: datetime) -> dict[str, str]:
    """Sign a body. There is one signature for each secret, so that receivers with the old and with the new secret can
    verify the call.
    """
    text = body.decode()
    return {
        "webhook-id": key,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signer.sign(key, now, text) for signer in signers),
    }


@dataclass(slots=True)
class Secrets:
    """The signers of each secret's name: from the variable, and from the file as it is now.

    The file is checked for changes once a second, so an operator can add a secret without a restart. While it cannot be
    read, the secrets that were read before are kept.
    """

    variable: Signers = field(default_factory=dict)
    file: Path | None = None
    _from_file: Signers = field(default_factory=dict)
    _file_version: tuple[int, int, int] | None = None
    # By time.monotonic():
    _check_file_at: float = 0.0
    _unreadable_since: float | None = None
    _say_again_at: float = 0.0

    @classmethod
    def load(cls, variable: str | None, file: Path | None) -> "Secrets":
        """Read the secrets at the start of the service. ValueError names the setting that cannot be read."""
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

    @property
    def names(self) -> frozenset[str]:
        """The names in the variable and in the file as it was read last."""
        return frozenset((*self.variable, *self._from_file))

    def signers(self, name: str) -> Sequence[Webhook] | None:
        """Return the signers of a secret's name, or None if neither the file nor the variable has the name."""
        self.refresh()
        return self._from_file.get(name) or self.variable.get(name)

    @property
    def stale_seconds(self) -> float:
        """For how long the file has been unreadable, so that older secrets may be in use. 0: it is readable."""
        return 0.0 if self._unreadable_since is None else time.monotonic() - self._unreadable_since

    def refresh(self) -> None:
        """Read the file if it has changed and a second has passed since the last look."""
        now = time.monotonic()
        if now < self._check_file_at:
            return
        try:
            self._read_file()
        except (ValueError, OSError) as error:
            if self._unreadable_since is None:
                self._unreadable_since, self._say_again_at = now, now
            if now >= self._say_again_at:
                self._say_again_at = now + REPEAT_SECONDS
                get_log().error("secrets_file_unreadable", problem=_problem(error), kept="the secrets read before")
        else:
            if self._unreadable_since is not None:
                self._unreadable_since = None
                get_log().info("secrets_file_readable")

    def _read_file(self) -> None:
        self._check_file_at = time.monotonic() + FILE_CHECK_SECONDS
        if self.file is None:
            return
        stat = self.file.stat()
        version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if version != self._file_version:
            self._from_file = parse_secrets(self.file.read_text())
            self._file_version = version


def _problem(error: ValueError | OSError) -> str:
    return f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
