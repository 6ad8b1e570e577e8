"""Which trace contexts are carried on."""

import pytest

from shared.contract.fields import read_traceparent, trace_headers

VALID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_valid_one_is_carried_as_it_is() -> None:
    assert read_traceparent({"traceparent": VALID}) == VALID
    assert trace_headers(VALID) == {"traceparent": VALID}


def test_without_one_there_is_no_header() -> None:
    assert read_traceparent({}) is None
    assert trace_headers(None) == {}


@pytest.mark.parametrize(
    "given",
    [
        "",
        VALID.upper(),
        VALID + "\n",
        VALID + "-extra",
        VALID.replace("00-", "ff-", 1),
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        VALID.encode(),
        17,
        None,
        {"a": 1},
    ],
)
def test_an_invalid_one_is_ignored(given: object) -> None:
    assert read_traceparent({"traceparent": given}) is None
