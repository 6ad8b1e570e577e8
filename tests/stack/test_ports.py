"""Ports for servers that are yet to start."""

import random

from stack.ports import free_port


def test_no_port_is_given_twice_even_if_no_process_listens_on_it_yet() -> None:
    ports = []
    for _ in range(300):
        random.seed(7)
        ports.append(free_port())
    assert len(set(ports)) == len(ports)
