"""Hashes of passwords: scrypt, written as `scrypt.N.r.p.salt.hash` without a character that a shell or a compose file
would read in another way. Pure, but for the random salt.
"""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from dataclasses import dataclass
from hashlib import scrypt

# 32 MiB and about a quarter of a second for one password.
COST, BLOCK_SIZE, PARALLEL = 2**15, 8, 3
# A hash that asks for more is refused: it would let a log-in take all memory.
MAX_MEMORY_BYTES = 256 * 1024 * 1024
MAX_PARALLEL = 16
SALT_BYTES, HASH_BYTES = 16, 32
MAX_PASSWORD_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class PasswordHash:
    cost: int
    block_size: int
    parallel: int
    salt: bytes
    hash: bytes

    @classmethod
    def parse(cls, text: str) -> "PasswordHash":
        """Read what `str` wrote. Raises ValueError, whose text does not repeat the hash."""
        parts = text.split(".")
        if len(parts) != 6 or parts[0] != "scrypt":
            raise ValueError("is not a hash that `python -m console hash-password` prints")
        try:
            cost, block_size, parallel = (int(part) for part in parts[1:4])
            salt, digest = (_decoded(part) for part in parts[4:])
        except (ValueError, BadBase64):
            raise ValueError("is a hash with a part that cannot be read") from None
        is_power_of_two = cost > 1 and cost & (cost - 1) == 0
        if not is_power_of_two or block_size < 1 or not 1 <= parallel <= MAX_PARALLEL or len(salt) < 8:
            raise ValueError("is a hash with numbers that scrypt does not take")
        if 128 * cost * block_size > MAX_MEMORY_BYTES:
            raise ValueError("is a hash that needs more than 256 MiB to check")
        return cls(cost, block_size, parallel, salt, digest)

    def __str__(self) -> str:
        salt, digest = _encoded(self.salt), _encoded(self.hash)
        return f"scrypt.{self.cost}.{self.block_size}.{self.parallel}.{salt}.{digest}"

    def fits(self, password: str) -> bool:
        """Tell whether it is the hash of this password. It takes as long for a wrong one."""
        if len(password) > MAX_PASSWORD_LENGTH:
            return False
        derived = _derive(password, self.salt, self.cost, self.block_size, self.parallel, len(self.hash))
        return hmac.compare_digest(self.hash, derived)


def hash_password(password: str) -> PasswordHash:
    """Hash a password under a new random salt."""
    salt = secrets.token_bytes(SALT_BYTES)
    derived = _derive(password, salt, COST, BLOCK_SIZE, PARALLEL, HASH_BYTES)
    return PasswordHash(COST, BLOCK_SIZE, PARALLEL, salt, derived)


def _derive(password: str, salt: bytes, cost: int, block_size: int, parallel: int, length: int) -> bytes:  # noqa: PLR0913, PLR0917
    raw = password.encode("utf-8", "surrogatepass")
    return scrypt(raw, salt=salt, n=cost, r=block_size, p=parallel, maxmem=2 * MAX_MEMORY_BYTES, dklen=length)


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
