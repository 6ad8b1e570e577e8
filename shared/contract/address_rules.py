"""The address rules: which addresses and ports a webhook call may go to. Pure.

An application chooses the URL, and the delivery service calls it from inside its own network. Without a guard the
application could reach hosts that only this network can reach. So calls go to public addresses alone, unless an
operator allows a network. The list of non-public networks is explicit, because Python's `is_global` takes multicast and
several tunnels for global.

The delivery service checks the address that each socket connects to. The consumer checks what is written in a URL, and
refuses the request if no call could ever pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from shared.errors import ForbiddenAddress

Network = IPv4Network | IPv6Network

NOT_PUBLIC_4 = tuple(
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
# Only the global unicast block of IPv6 is public. Outside of it are loopback, IPv4-mapped and -compatible addresses,
# NAT64, unique local, link-local, site-local and multicast.
PUBLIC_6 = IPv6Network("2000::/3")
NOT_PUBLIC_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: contains an IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
# Names below these domains belong to private networks. So does every name without a dot.
_PRIVATE_DOMAINS = (".internal", ".local", ".localdomain", ".home.arpa")
_LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What an operator allows: networks that are not public, and ports."""

    allow_networks: Sequence[Network] = ()
    allow_ports: frozenset[int] = frozenset()  # empty: every port

    def check_address(self, text: str) -> None:
        """Raise ForbiddenAddress unless a socket may connect to the address."""
        try:
            address = ip_address(text)
        except ValueError:
            raise ForbiddenAddress(f"{text!r} is not an IP address") from None
        if not self._allows(address):
            raise ForbiddenAddress(f"{address} is not a public address")

    def check_host(self, host: str) -> None:
        """Raise ForbiddenAddress unless a proxy may be asked to call the host.

        The proxy looks names up, and its answers are not seen here. So an address is checked as without a proxy, and a
        name is refused only if it always belongs to this machine or to a private network.
        """
        labels = host.rstrip(".").lower().split(".")
        # No top-level domain starts with a digit: such a host is an address in some spelling.
        if ":" in host or labels[-1][:1].isdigit():
            self.check_address(host)
        elif labels[-1] == "localhost":
            for address in _LOOPBACK:
                self.check_address(address)
        elif (len(labels) == 1 or host.rstrip(".").lower().endswith(_PRIVATE_DOMAINS)) and not self.allow_networks:
            raise ForbiddenAddress("the name belongs to a private network, and no network is allowed")

    def check_written_host(self, host: str) -> None:
        """Raise ForbiddenAddress if no call to the host can ever be allowed, whatever a name service answers.

        The host is one that a webhook's URL may have: a plain IPv4 address, an IPv6 address without brackets, or a
        name. Of names `localhost` alone is refused, if no address of loopback is allowed.
        """
        name = host.rstrip(".").lower()
        if ":" in name or name.rpartition(".")[2].isdigit():
            self.check_address(name)
        elif name == "localhost" and not any(self._allows(ip_address(address)) for address in _LOOPBACK):
            raise ForbiddenAddress("localhost is not a public address")

    def allows_port(self, port: int) -> bool:
        """Tell whether a call may go to the port."""
        return not self.allow_ports or port in self.allow_ports

    def _allows(self, address: IPv4Address | IPv6Address) -> bool:
        return is_public(address) or any(
            address.version == network.version and address in network for network in self.allow_networks
        )


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Tell whether an address is reachable on the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in NOT_PUBLIC_4)
    return address in PUBLIC_6 and not any(address in network for network in NOT_PUBLIC_6)


def parse_networks(text: str) -> tuple[Network, ...]:
    """Read networks such as 10.1.0.0/16,fd00::/8. ValueError names the part that is no network."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def parse_ports(text: str) -> frozenset[int]:
    """Read ports such as 80,443. ValueError says what a port is."""
    ports = frozenset(int(part) for part in text.split(",") if part.strip())
    if any(not 0 < port < 65536 for port in ports):
        raise ValueError("a port is a number from 1 to 65535")
    return ports
