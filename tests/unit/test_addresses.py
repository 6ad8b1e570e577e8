"""Addresses of stores: every Python reads them the same."""

import pytest

from shared.runtime.addresses import parse_address


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("postgresql://u:p@db1/d", ("db1",)),
        ("postgresql://u:p@db1:5432,[::1]:5433/d", ("db1:5432", "[::1]:5433")),
        ("postgresql://u:p@db1,[fe80::1%25eth0]/d", ("db1", "[fe80::1%25eth0]")),
        ("postgresql://u:p@[::ffff:10.0.0.1],db2/d?a=b", ("[::ffff:10.0.0.1]", "db2")),
        ("postgresql:///d?host=/run/postgresql", ("",)),
        ("amqps://u:p%40@mq:5671/%2F?cafile=/ca.pem", ("mq:5671",)),
    ],
)
def test_an_address_is_taken_apart_and_put_together(text: str, hosts: tuple[str, ...]) -> None:
    address = parse_address(text)
    assert address.hosts == hosts
    assert str(address) == text
    assert "p@" not in repr(address)


def test_the_address_of_one_host_has_everything_else() -> None:
    address = parse_address("postgresql://u:p@db1:1,[::1]:2/d?a=b")
    assert [str(address.with_host(host)) for host in address.hosts] == [
        "postgresql://u:p@db1:1/d?a=b",
        "postgresql://u:p@[::1]:2/d?a=b",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "db1",
        "postgresql:/db1",
        "postgresql://db1:65536/d",
        "postgresql://[::g]/d",
        "postgresql://[::1/d",
        "postgresql://::1/d",
        "postgresql://u:p@db\n1/d",
        "postgresql://db1/d#x",
        "postgresql://db1/d?x",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^is not an address|^has a host|^bad query"):
        parse_address(text)


def test_the_line_end_of_a_file_with_the_address_does_not_matter() -> None:
    assert str(parse_address("postgresql://db1/d\n")) == "postgresql://db1/d"
