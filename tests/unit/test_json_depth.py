"""The depth of JSON is found in its text, whatever the limits of a JSON library are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract.json_depth import MAX_DEPTH, too_deep_field


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [1, MAX_DEPTH, MAX_DEPTH + 1, 1_000, 1_100, 200_000])
def test_a_field_is_too_deep_beyond_the_limit_and_named(depth: int) -> None:
    body = f'{{"id": "x [[", "payload": {nested(depth)}, "y": {nested(300)}}}'.encode()
    assert too_deep_field(body) == ("payload" if depth > MAX_DEPTH else "y")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"a": "' + b"[" * 1_000 + b'"}', None),
        (b'{"a": "\\"' + b"[" * 1_000 + b'"}', None),
        (b'{"a": [' + b"[]," * 1_000 + b"[]]}", None),
        (b'{"a\\"b": ' + nested(100).encode() + b"}", 'a\\"b'),
        (b'{"a": ' + b"[" * 100, "a"),
        (b'{"a": "' + b'\\"[' * 100, None),
        (nested(100).encode(), "body"),
        (b'["x", ' + nested(100).encode() + b"]", "body"),
        (b"", None),
    ],
)
def test_brackets_in_texts_do_not_count_and_what_is_no_object_is_the_body(body: bytes, field: str | None) -> None:
    assert too_deep_field(body) == field


def depth_of(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if children is None else 1 + max(map(depth_of, children), default=0)


@given(
    st.recursive(
        st.text('"\\[]{}a', max_size=4) | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
    st.integers(MAX_DEPTH - 4, MAX_DEPTH),
)
def test_it_agrees_with_a_parser(value: Any, more: int) -> None:
    deeper = value
    for _ in range(more):
        deeper = [deeper]
    body = json.dumps({"[": "{", "payload": deeper}).encode()
    assert (too_deep_field(body) == "payload") == (depth_of(deeper) > MAX_DEPTH)


@pytest.mark.parametrize("piece", [b'"', b'\\"', b'"\\', b'["', b'"[', b"[]", b'{"a":'])
def test_a_hostile_text_takes_no_longer_than_its_length(piece: bytes) -> None:
    """With a time that grows with the square of the length, this would take hours."""
    too_deep_field(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + piece * (3_000_000 // len(piece)))
