"""Tokens, by which programs use the API. A token is random, so its SHA-256 hash cannot be guessed back, and checking it
costs nothing: that is no way to keep a password. Pure, but for making one.
"""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from dataclasses import dataclass
from hashlib import sha256

TOKEN_BYTES = 32
MAX_TOKEN_LENGTH = 200
HASH_OF_TOKEN = "sha256."  # noqa: S105 - how such a hash begins


@dataclass(frozen=True, slots=True)
class TokenHash:
    hash: bytes

    @classmethod
    def of(cls, token: str) -> "TokenHash":
        return cls(sha256(token.encode("utf-8", "surrogatepass")).digest())

    @classmethod
    def parse(cls, text: str) -> "TokenHash":
        """Read what `str` wrote. Raises ValueError, whose text does not repeat the hash."""
        try:
            found = urlsafe_b64decode(text.removeprefix(HASH_OF_TOKEN) + "=")
        except BadBase64:
            found = b""
        if not text.startswith(HASH_OF_TOKEN) or len(found) != sha256().digest_size:
            raise ValueError("is not a hash that `python -m console make-token` prints")
        return cls(found)

    def __str__(self) -> str:
        return HASH_OF_TOKEN + urlsafe_b64encode(self.hash).decode().rstrip("=")

    def fits(self, token: str) -> bool:
        """Tell whether it is the hash of this token, in the same time for a wrong one."""
        return len(token) <= MAX_TOKEN_LENGTH and hmac.compare_digest(self.hash, TokenHash.of(token).hash)


def make_token() -> str:
    return f"duebell_{secrets.token_urlsafe(TOKEN_BYTES)}"
