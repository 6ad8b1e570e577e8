"""The broker's URL: what is in it, and what is wrong with it. It may name several hosts of a cluster. No message quotes
it, because it may hold a password.
"""

import re
from urllib.parse import unquote, urlsplit

from duebell.errors import InvalidURL

HEARTBEAT_SECONDS = 10
HEARTBEAT_SECONDS_OF_SEVERAL = 5


def check_url(url: str) -> str:
    """Return the URL, or raise InvalidURL before a connection is tried."""
    if not isinstance(url, str) or not url.strip():
        raise InvalidURL(f"url: is {url!r}; it must be amqp://user:password@host:5672/vhost (is AMQP_URL set?)")
    for one in urls_of_hosts(url):
        _check_url_of_host(one)
    return url


def _check_url_of_host(url: str) -> None:
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


def urls_of_hosts(url: str) -> list[str]:
    """Return the URL of each host of `amqp://user:password@a:5672,b:5672/vhost`."""
    scheme, separator, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, hosts = authority.rpartition("@")
    return [f"{scheme}{separator}{user}{at}{host}{rest[len(authority) :]}" for host in hosts.split(",")]


def user_of(url: str) -> str:
    return unquote(urlsplit(urls_of_hosts(url)[0]).username or "guest")


def host_of(url: str) -> str:
    """Return the host of the URL of one host."""
    return urlsplit(url).hostname or ""


def virtual_host_of(url: str) -> str:
    return unquote(urlsplit(url).path[1:]) or "/"


def urls_to_try(url: str) -> list[str]:
    """Return the URL of each host, with a heartbeat: a stalled broker is noticed after about three of them, sooner if
    there is another host to go to. With aiormq's default of 60 s it would take three minutes.
    """
    urls = urls_of_hosts(url)
    if "heartbeat=" in (query := urlsplit(urls[0]).query):
        return urls
    seconds = HEARTBEAT_SECONDS if len(urls) == 1 else HEARTBEAT_SECONDS_OF_SEVERAL
    return [f"{one}{'&' if query else '?'}heartbeat={seconds}" for one in urls]
