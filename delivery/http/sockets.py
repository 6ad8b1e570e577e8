"""Sockets for webhook calls. The last guard is here, on the address that is about to be connected to: it also covers
addresses that are written into a URL, which the resolver never sees.
"""

import socket
from contextvars import ContextVar

from delivery.http.address_guard import AddressRules
from delivery.http.resolver import AddressInfo

# When a receiver stops reading, the kernel gives its connection up after this time, which is longer than a call may
# take. Without it, a call that was cut while its body was being sent would keep its socket for as long as the receiver
# stays connected.
MAX_UNREAD_SECONDS = 130

# The sockets that the call of this context has opened. None: the call uses a connection that was kept from another.
opened_here: ContextVar[list[socket.socket]] = ContextVar("opened_here")


class GuardedSockets:
    """Makes the sockets, and knows how many of them are open."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._made: list[socket.socket] = []

    def make(self, info: AddressInfo) -> socket.socket:
        """ForbiddenAddress if the address is not allowed. aiohttp calls this for every connection."""
        family, kind, proto, _, address = info
        self._rules.check_address(str(address[0]))
        made = socket.socket(family=family, type=kind, proto=proto)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, MAX_UNREAD_SECONDS * 1000)
        self._made.append(made)
        opened_here.get([]).append(made)
        return made

    def are_open(self, count: int) -> bool:
        """Whether at least so many are open."""
        if len(self._made) >= count:
            self._made = [made for made in self._made if made.fileno() >= 0]
        return len(self._made) >= count
