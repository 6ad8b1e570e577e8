"""Free TCP ports on the loopback address.

They are taken from below the range that the kernel uses for outgoing connections: a server that is down for a
restart then finds its port still free, however many connections were opened meanwhile."""

import random
import socket

LOOPBACK = "127.0.0.1"
PRIVATE_PORTS = range(20_000, 30_000)


def free_port() -> int:
    """A port that nobody listens on at this moment; whoever binds it must still be ready to lose the race."""
    for port in random.sample(PRIVATE_PORTS, k=200):
        with socket.socket() as candidate:
            # Like every server: a connection of an earlier one that still lingers in TIME_WAIT is no obstacle.
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port on {LOOPBACK} between {PRIVATE_PORTS.start} and {PRIVATE_PORTS.stop}")
