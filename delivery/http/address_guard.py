"""Which addresses a webhook may reach. Pure.

A URL in a schedule is chosen by an application, and called from inside the network that Duebell runs in; without a
guard it could reach what only that network can reach. So: public addresses only, by an explicit list (Python's
`is_global` calls multicast and several tunnels global), unless an operator opens a network by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from delivery.errors import ForbiddenAddress

Network = IPv4Network | IPv6Network

_NOT_PUBLIC_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT, and one cloud's metadata
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # one cloud's metadata, on a public address
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# Of IPv6 only the global unicast block is public at all. That leaves out loopback, IPv4-mapped and -compatible, NAT64,
# unique local, link-local, site-local and multicast in one go.
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
# Names below these are known on the inside alone. So is every name without a dot.
_INSIDE_DOMAINS = (".internal", ".local", ".localdomain", ".home.arpa")
_LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class AddressRules:
    allow_networks: Sequence[Network] = ()
    allow_ports: frozenset[int] = frozenset()  # empty: every port

    def check_address(self, text: str) -> None:
        """ForbiddenAddress unless the address may be connected to. The text is what the socket would get."""
        try:
            address = ip_address(text)
        except ValueError:
            raise ForbiddenAddress(f"{text!r} is not an IP address") from None
        if not is_public(address) and not any(
            address.version == network.version and address in network for network in self.allow_networks
        ):
            raise ForbiddenAddress(f"{address} is not a public address")

    def check_host(self, host: str) -> None:
        """ForbiddenAddress unless a proxy may be asked to call this host. The proxy looks names up, and what it finds
        is not seen here: an address is checked as always, a name only if it leads inside whatever the lookup says.
        """
        labels = host.rstrip(".").lower().split(".")
        if ":" in host or labels[-1][:1].isdigit():  # an address in some spelling: no top-level domain starts so
            self.check_address(host)
        elif labels[-1] == "localhost":
            for address in _LOOPBACK:
                self.check_address(address)
        elif (len(labels) == 1 or host.rstrip(".").lower().endswith(_INSIDE_DOMAINS)) and not self.allow_networks:
            raise ForbiddenAddress("the name is one of the inside, where no network is open")

    def allows_port(self, port: int) -> bool:
        return not self.allow_ports or port in self.allow_ports


def is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def parse_networks(text: str) -> tuple[Network, ...]:
    """Comma-separated, such as 10.1.0.0/16,fd00::/8. ValueError names the one that is none."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def parse_ports(text: str) -> frozenset[int]:
    ports = frozenset(int(part) for part in text.split(",") if part.strip())
    if any(not 0 < port < 65536 for port in ports):
        raise ValueError("a port is a number from 1 to 65535")
    return ports
