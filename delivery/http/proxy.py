"""The egress proxy that all webhook calls go through, if WEBHOOK_PROXY names one. Pure."""

from dataclasses import dataclass, field

import yarl
from aiohttp import encode_basic_auth

EXAMPLE = "http://user:password@proxy.example:3128"


@dataclass(frozen=True, slots=True)
class Proxy:
    """The password is in neither the URL nor the repr: aiohttp's own messages show the URL."""

    url: yarl.URL
    headers: dict[str, str] = field(repr=False)


def parse_proxy(text: str) -> Proxy | None:
    """None for an empty text. ValueError, without the text, which may hold a password."""
    if not text:
        return None
    try:
        url = yarl.URL(text)
        usable = url.scheme in {"http", "https"} and url.host and url.explicit_port
    except ValueError:
        usable = False
    if not usable or url.raw_path_qs != "/" or url.raw_fragment:
        raise ValueError(f"is not an address such as {EXAMPLE}")
    if url.raw_user is None and url.raw_password is None:
        return Proxy(url, {})
    return Proxy(url.with_user(None), {"Proxy-Authorization": encode_basic_auth(url.user or "", url.password or "")})
