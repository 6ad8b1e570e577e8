"""Sessions without a store: a cookie that names the user, signed with the console's key, of a limited lifetime. The
signature covers the user's password hash, so that a new password ends the sessions of the old one. Pure.
"""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import orjson

from console.access.users import User

MAX_COOKIE_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Session:
    user: str
    id: str
    ends_at: datetime


class SessionKey:
    """Signs sessions and form tokens."""

    def __init__(self, key: str | None = None) -> None:
        """Take the key. Without one, make a random key: sessions then end when the process does."""
        self._key = sha256(key.encode()).digest() if key else secrets.token_bytes(32)

    def begin(self, user: User, now: datetime, lifetime: timedelta) -> str:
        """Return the cookie of a new session."""
        ends_at = int((now + lifetime).timestamp())
        content = _encoded(orjson.dumps([user.name, secrets.token_urlsafe(12), ends_at]))
        return f"{content}.{self._sign('session', content, _mark_of(user))}"

    def read(self, cookie: str) -> Session | None:
        """Return what the cookie says, without a check of its signature; None if it cannot be read."""
        if len(cookie) > MAX_COOKIE_LENGTH:
            return None
        try:
            name, session_id, ends_at = orjson.loads(_decoded(cookie.partition(".")[0]))
            return Session(str(name), str(session_id), datetime.fromtimestamp(int(ends_at), UTC))
        except (ValueError, TypeError, OverflowError, OSError, BadBase64):
            return None

    def is_valid(self, cookie: str, session: Session, user: User, now: datetime) -> bool:
        """Tell whether the console signed this cookie for this user as the user is now, and it has not ended."""
        content, _, signature = cookie.partition(".")
        signed = self._sign("session", content, _mark_of(user))
        return hmac.compare_digest(signature.encode(), signed.encode()) and now < session.ends_at

    def form_token(self, user: str, session_id: str) -> str:
        """Return the token that every form of this session carries. Another site cannot know it."""
        return self._sign("form", user, session_id)

    def _sign(self, *parts: str) -> str:
        return _encoded(hmac.new(self._key, "\0".join(parts).encode(), sha256).digest())


def _mark_of(user: User) -> str:
    return str(user.password)


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
