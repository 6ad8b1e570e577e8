"""The guard over what a name service answers. No connection is made here, and no server is asked."""

import socket

import pytest

from delivery.http.resolver import AddressInfo, GuardedResolver
from shared.contract.address_rules import AddressRules
from shared.errors import ForbiddenAddress

PUBLIC = ("93.184.215.14", "8.8.8.8")
INSIDE = ("10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00::1")


def resolver_of(*addresses: str) -> GuardedResolver:
    def answer(_: str, port: int) -> list[AddressInfo]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    return GuardedResolver(AddressRules(), 5.0, answer)


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_forbidden_address_is_enough_wherever_it_stands(inside: str, place: int) -> None:
    answers = [*PUBLIC[:place], inside, *PUBLIC[place:]]
    with pytest.raises(ForbiddenAddress, match="not a public address"):
        await resolver_of(*answers).resolve("mixed.example", 443)


async def test_public_addresses_are_all_handed_on_with_the_port_that_was_asked_for() -> None:
    infos = await resolver_of(*PUBLIC).resolve("public.example", 8443)
    assert [(info["host"], info["port"]) for info in infos] == [(address, 8443) for address in PUBLIC]
