"""The guard against a table of its own: the special-purpose registries of IANA (RFC 6890 and what followed), multicast,
reserved space and one cloud's metadata, written down a second time as first and last address, and compared as numbers.
"""

from ipaddress import IPv4Address, IPv6Address

from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.contract.address_rules import is_public

NOT_PUBLIC_4 = """
0.0.0.0 0.255.255.255
10.0.0.0 10.255.255.255
100.64.0.0 100.127.255.255
127.0.0.0 127.255.255.255
168.63.129.16 168.63.129.16
169.254.0.0 169.254.255.255
172.16.0.0 172.31.255.255
192.0.0.0 192.0.0.255
192.0.2.0 192.0.2.255
192.31.196.0 192.31.196.255
192.52.193.0 192.52.193.255
192.88.99.0 192.88.99.255
192.168.0.0 192.168.255.255
192.175.48.0 192.175.48.255
198.18.0.0 198.19.255.255
198.51.100.0 198.51.100.255
203.0.113.0 203.0.113.255
224.0.0.0 255.255.255.255
"""
NOT_PUBLIC_6 = """
:: 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
2620:4f:8000:: 2620:4f:8000:ffff:ffff:ffff:ffff:ffff
3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
4000:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
"""


def spans(table: str, kind: type[IPv4Address] | type[IPv6Address]) -> list[tuple[int, int]]:
    lines = (line.split() for line in table.split("\n") if line)
    return [(int(kind(first)), int(kind(last))) for first, last in lines]


SPANS_4, SPANS_6 = spans(NOT_PUBLIC_4, IPv4Address), spans(NOT_PUBLIC_6, IPv6Address)


def addresses(table: list[tuple[int, int]], bits: int) -> st.SearchStrategy[int]:
    """Any address; and, as often, one at or beside an edge of the table, or inside a span."""
    edges = sorted(
        {edge + step for span in table for edge in span for step in (-1, 0, 1) if 0 <= edge + step < 2**bits}
    )
    return st.one_of(
        st.integers(0, 2**bits - 1),
        st.sampled_from(edges),
        st.sampled_from(table).flatmap(lambda span: st.integers(*span)),
    )


@settings(max_examples=500, deadline=None)
@given(addresses(SPANS_4, 32))
@example(int(IPv4Address("8.8.8.8")))
def test_an_ipv4_address_is_public_unless_the_table_has_it(number: int) -> None:
    assert is_public(IPv4Address(number)) == (not any(first <= number <= last for first, last in SPANS_4))


@settings(max_examples=500, deadline=None)
@given(addresses(SPANS_6, 128))
@example(int(IPv6Address("2606:4700:4700::1111")))
def test_an_ipv6_address_is_public_unless_the_table_has_it(number: int) -> None:
    assert is_public(IPv6Address(number)) == (not any(first <= number <= last for first, last in SPANS_6))


@settings(max_examples=200, deadline=None)
@given(addresses(SPANS_4, 32))
def test_no_ipv4_address_is_public_in_the_disguise_of_an_ipv6_one(number: int) -> None:
    """Mapped, compatible, translated, NAT64 (both prefixes) and 6to4: refused, even with a public address inside."""
    disguises = [0xFFFF << 32, 0, 0xFFFF << 48, 0x64FF9B << 96, 0x64FF9B0001 << 80]
    assert not any(is_public(IPv6Address(prefix | number)) for prefix in disguises)
    assert not is_public(IPv6Address(0x2002 << 112 | number << 80 | 1))
