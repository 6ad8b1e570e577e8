"""Takes the address of a store apart, the same on every Python: newer versions of the standard library's URL parser
refuse a list of hosts with an IPv6 address in it. Pure.
"""

import re
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from urllib.parse import parse_qsl

_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z]+)://(?:(?P<user>[^/?#]*)@)?(?P<hosts>[^@/?#]*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?"
)
_HOST = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<name>[^\[\]:]*))(?::(?P<port>[0-9]*))?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of an address. `hosts` are texts such as `db1`, `db1:5432` and `[::1]:5432`."""

    scheme: str
    user: str | None  # with the password
    hosts: tuple[str, ...]
    path: str
    query: str

    def with_host(self, host: str) -> "Address":
        """Return the address of one of the hosts."""
        return replace(self, hosts=(host,))

    def __str__(self) -> str:
        user = "" if self.user is None else f"{self.user}@"
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{user}{','.join(self.hosts)}{self.path}{query}"

    def __repr__(self) -> str:
        return f"Address({','.join(self.hosts)})"  # without the password


def parse_address(text: str) -> Address:
    """Raises ValueError, whose text never has a part of the address: it may contain a password."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or _CONTROL.search(found[0]):
        raise ValueError("is not an address")
    hosts = tuple(found["hosts"].split(","))
    if not all(map(_is_host, hosts)):
        raise ValueError("has a host or a port that cannot be one")
    parse_qsl(found["query"] or "", strict_parsing=bool(found["query"]))
    return Address(found["scheme"].lower(), found["user"], hosts, found["path"] or "", found["query"] or "")


def _is_host(text: str) -> bool:
    found = _HOST.fullmatch(text)
    if found is None or int(found["port"] or 0) > 65_535:
        return False
    if found["ipv6"]:
        try:
            IPv6Address(found["ipv6"])
        except ValueError:
            return False
    return True
