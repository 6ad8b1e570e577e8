"""Free TCP ports on the loopback address.

They are taken from below the range that the kernel uses for outgoing connections: a server that is down for a
restart then finds its port still free, however many connections were opened meanwhile."""

import random
import socket

LOOPBACK = "127.0.0.1"
PRIVATE_PORTS = range(20_000, 30_000)
# Without a seed: two processes with one seed would find the same ports.
_chance = random.SystemRandom()
_given: set[int] = set()


def free_port() -> int:
    """Find a port that is free and that this function has not returned before in this process: the server of an earlier
    one may be about to start, or down for a restart. Another process may still bind the port first, so callers retry.
    """
    fresh = [port for port in PRIVATE_PORTS if port not in _given]
    for port in _chance.sample(fresh, k=min(200, len(fresh))):
        with socket.socket() as candidate:
            # Like every server: a connection of an earlier one that still lingers in TIME_WAIT is no obstacle.
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((LOOPBACK, port))
            except OSError:
                continue
            _given.add(port)
            return port
    raise RuntimeError(f"no free port on {LOOPBACK} between {PRIVATE_PORTS.start} and {PRIVATE_PORTS.stop}")
