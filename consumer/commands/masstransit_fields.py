"""Reads single fields of MassTransit's envelopes. Values that only pass through stay as the text that they came as. An
error begins with the path of its field. Pure.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from shared.contract.fields import parse_date_time

Fields = dict[str, msgspec.Raw]


class BadEnvelope(Exception):
    """An envelope cannot be read. The text names the field."""


def read_fields(path: str, text: msgspec.Raw | bytes) -> Fields:
    try:
        return msgspec.json.decode(text, type=Fields)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadEnvelope(f"{path}: must be a JSON object") from None


def is_given(fields: Fields, name: str) -> bool:
    return name in fields and bytes(fields[name]) != b"null"


def required(fields: Fields, path: str) -> msgspec.Raw:
    name = path.rpartition(".")[2]
    if not is_given(fields, name):
        raise BadEnvelope(f"{path}: is missing")
    return fields[name]


def read_value(fields: Fields, path: str, kind: Any, called: str, *default: Any) -> Any:  # noqa: ANN401 - as `kind` says
    """Return the value of a field, which has to be of that kind. With a default, the field may be missing."""
    name = path.rpartition(".")[2]
    if default and not is_given(fields, name):
        return default[0]
    try:
        return msgspec.json.decode(required(fields, path), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadEnvelope(f"{path}: must be {called}") from None


def read_uuid(fields: Fields, path: str) -> str:
    try:
        return str(UUID(read_value(fields, path, str, "a UUID")))
    except ValueError:
        raise BadEnvelope(f"{path}: must be a UUID") from None


def read_instant(fields: Fields, path: str) -> datetime | None:
    """Return the moment of a field. Without an offset it is in UTC, as MassTransit's contract says."""
    text = read_value(fields, path, str | None, "a date and time", None)
    if text is None or text.startswith("0001-01-01"):  # .NET's default, for a time that was not set
        return None
    try:
        moment = parse_date_time(text)
    except ValueError as error:
        raise BadEnvelope(f"{path}: {error}") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
