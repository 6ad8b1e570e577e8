"""Labels of a job: up to 16 short texts under short keys, by which people search and act. Pure."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

MAX_LABELS = 16
MAX_KEY_LENGTH = 63
MAX_VALUE_LENGTH = 100
# A key has no "=": a label is written key=value.
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*", re.ASCII)
_KEY_PATTERN = f"^[A-Za-z0-9][A-Za-z0-9_./-]{{0,{MAX_KEY_LENGTH - 1}}}$"


def _check_keys(labels: Any) -> Any:  # noqa: ANN401 - any value: pydantic checks its type afterwards
    if not isinstance(labels, dict):
        return labels
    if len(labels) > MAX_LABELS:
        raise ValueError(f"there are {len(labels)}, and a job has {MAX_LABELS} at most")
    for key in labels:
        if not isinstance(key, str) or not _KEY.fullmatch(key) or len(key) > MAX_KEY_LENGTH:
            raise ValueError(
                f"the key {str(key)[:MAX_KEY_LENGTH]!r} must have 1 to {MAX_KEY_LENGTH} of A-Z, a-z, 0-9, _, ., / and "
                "-, and begin with a letter or a digit"
            )
    return labels


def _check_value(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must not contain line breaks or other control characters")
    return text


LabelValue = Annotated[str, StringConstraints(min_length=1, max_length=MAX_VALUE_LENGTH), AfterValidator(_check_value)]
Labels = Annotated[
    dict[str, LabelValue],
    Field(json_schema_extra={"propertyNames": {"pattern": _KEY_PATTERN}, "maxProperties": MAX_LABELS}),
    BeforeValidator(_check_keys),
]


def write_labels(labels: Mapping[str, str]) -> str:
    """Return labels as JSON text: the same text for the same labels."""
    return orjson.dumps(dict(labels), option=orjson.OPT_SORT_KEYS).decode()


def read_labels(text: str | None) -> dict[str, str] | None:
    """Return labels that Postgres, or `write_labels`, wrote."""
    if text is None:
        return None
    labels: dict[str, str] = orjson.loads(text)
    return dict(sorted(labels.items()))


def parse_label(text: str) -> tuple[str, str]:
    """Split key=value. Raises ValueError if it cannot be the label of a job."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not of the form key=value, such as team=billing")
    _check_keys({key: value})
    if not 1 <= len(value) <= MAX_VALUE_LENGTH:
        raise ValueError(f"the value of {key!r} must have 1 to {MAX_VALUE_LENGTH} characters")
    _check_value(value)
    return key, value


def parse_labels(texts: list[str]) -> dict[str, str]:
    """Return the labels of several texts key=value. Raises ValueError if one is wrong, or two have one key."""
    labels: dict[str, str] = {}
    for text in texts:
        key, value = parse_label(text)
        if labels.setdefault(key, value) != value:
            raise ValueError(f"{key!r} is given twice; a job has one value for a key")
    _check_keys(labels)
    return labels


def label_row(key: str, value: str) -> str:
    """Return a label as the table `job_labels` has it."""
    return f"{key}={value}"
