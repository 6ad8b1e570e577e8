"""Which addresses may be called: a table of everything that must not, whatever it is called elsewhere."""

from ipaddress import IPv4Address, IPv4Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract.address_rules import AddressRules, is_public, parse_networks, parse_ports
from shared.errors import ForbiddenAddress

FORBIDDEN = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1",
    "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1",
    "2001:0:53aa:64c:0:fbfe:80ff:fffe", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1",
    "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.215.14", "172.15.0.1", "172.32.0.1", "11.0.0.1", "100.128.0.1",
          "2606:4700:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888"]  # fmt: skip


@pytest.mark.parametrize("address", FORBIDDEN)
def test_it_is_refused_by_default(address: str) -> None:
    with pytest.raises(ForbiddenAddress):
        AddressRules().check_address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    AddressRules().check_address(address)


@pytest.mark.parametrize("text", ["localhost", "example.com", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", ""])
def test_what_is_no_plain_address_is_refused(text: str) -> None:
    with pytest.raises(ForbiddenAddress):
        AddressRules().check_address(text)


def test_a_named_network_is_opened_and_nothing_beside_it() -> None:
    rules = AddressRules(parse_networks("10.1.0.0/16, fd00::/8"))
    rules.check_address("10.1.2.3")
    rules.check_address("fd12::1")
    for still_closed in ("10.2.0.1", "127.0.0.1", "::ffff:10.1.2.3", "fe80::1"):
        with pytest.raises(ForbiddenAddress):
            rules.check_address(still_closed)


@given(st.integers(0, 2**32 - 1))
def test_python_never_calls_private_what_we_call_public(number: int) -> None:
    address = IPv4Address(number)
    if is_public(address):
        for is_it in ("is_private", "is_loopback", "is_link_local", "is_multicast", "is_reserved"):
            assert not getattr(address, is_it), is_it
        assert address not in IPv4Network("100.64.0.0/10")


@given(st.ip_addresses(v=6))
def test_only_global_unicast_is_public_in_ipv6(address: object) -> None:
    parsed = ip_address(str(address))
    if is_public(parsed):
        assert str(parsed)[0] in "23"
        assert not parsed.is_private


def test_ports_can_be_limited() -> None:
    assert AddressRules().allows_port(8080)
    limited = AddressRules(allow_ports=parse_ports("80, 443"))
    assert limited.allows_port(443)
    assert not limited.allows_port(8080)


@pytest.mark.parametrize("text", ["0", "65536", "http", "80;443"])
def test_what_is_no_port_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - int's own message will do
        parse_ports(text)


def test_a_network_with_host_bits_is_an_error() -> None:
    with pytest.raises(ValueError, match="host bits"):
        parse_networks("10.1.2.3/8")


INSIDE_NAMES = ["intranet", "printer.local", "metadata.google.internal", "a.home.arpa", "x.localdomain."]


@pytest.mark.parametrize(
    "host", [*FORBIDDEN, *INSIDE_NAMES, "localhost", "a.LOCALHOST", "127.1", "0x7f.1", "2130706433"]
)
def test_a_proxy_is_not_asked_for_what_leads_inside(host: str) -> None:
    with pytest.raises(ForbiddenAddress):
        AddressRules().check_host(host)


@pytest.mark.parametrize("host", [*PUBLIC, "example.com", "example.com.", "xn--bcher-kva.example", "local.example"])
def test_a_proxy_may_be_asked_for_public_addresses_and_names(host: str) -> None:
    AddressRules().check_host(host)


def test_a_network_that_is_open_opens_names_of_the_inside_for_a_proxy_but_not_loopback() -> None:
    rules = AddressRules(parse_networks("10.1.0.0/16"))
    for host in (*INSIDE_NAMES, "10.1.2.3"):
        rules.check_host(host)
    for host in ("localhost", "10.2.0.1", "127.0.0.1"):
        with pytest.raises(ForbiddenAddress):
            rules.check_host(host)
    AddressRules(parse_networks("127.0.0.0/8,::1/128")).check_host("localhost")
