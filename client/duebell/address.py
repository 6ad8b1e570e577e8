"""The broker's URL: what is in it, and what is wrong with it. No message quotes it, because it may hold a password."""

from urllib.parse import unquote, urlsplit

from duebell.errors import InvalidURL

HEARTBEAT_SECONDS = 10


def check_url(url: str) -> str:
    """Return the URL, or raise InvalidURL before a connection is tried."""
    if not isinstance(url, str) or not url.strip():
        raise InvalidURL(f"url: is {url!r}; it must be amqp://user:password@host:5672/vhost (is AMQP_URL set?)")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidURL(
            "url: host or port cannot be read; in a user name or password write / @ : # ? and % as %XX"
        ) from None
    if parts.scheme not in {"amqp", "amqps"}:
        raise InvalidURL("url: must start with amqp:// or amqps://")
    if not parts.hostname or port == 0:
        raise InvalidURL("url: names no host or port; it must be like amqp://user:password@host:5672/vhost")
    return url


def user_of(url: str) -> str:
    return unquote(urlsplit(url).username or "guest")


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def virtual_host_of(url: str) -> str:
    return unquote(urlsplit(url).path[1:]) or "/"


def with_heartbeat(url: str) -> str:
    """A stalled broker is noticed after about three heartbeats; aiormq's default of 60 s would take three minutes."""
    if "heartbeat=" in (query := urlsplit(url).query):
        return url
    return f"{url}{'&' if query else '?'}heartbeat={HEARTBEAT_SECONDS}"
