"""Reads a file that says which schedules there should be: YAML, or JSON, which is YAML, too. Times stay the texts that
they are. Every mistake in the file is found before anything is sent.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError

from cli.errors import BadUsage
from consumer.commands.parse import RawCommand, Refused, read_command
from consumer.commands.schedule import Schedule
from shared.contract.messages import REQUEST_TYPE

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_SCHEDULES = 10_000
MAX_MISTAKES_SHOWN = 20


class _TextsForTimes(SafeConstructor):
    """YAML reads 2030-01-31T09:00:00Z as an instant, and loses whether it had an offset."""


_TextsForTimes.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


class _PlainYaml(YAML):
    """Reads plain values alone, and times as texts."""

    def __init__(self) -> None:
        super().__init__(typ="safe", pure=True)
        self.Constructor = _TextsForTimes


@dataclass(frozen=True, slots=True)
class Wanted:
    """A schedule as the file has it: the content of its request without a revision, and how the consumer reads it."""

    content: dict[str, Any]
    schedule: Schedule

    @property
    def id(self) -> str:
        return self.schedule.id


def read_file(path: str, max_payload_bytes: int) -> list[Wanted]:
    """Return the schedules of the file, `-` being stdin. Raises BadUsage, which says what is wrong and where."""
    document = _parse(_text(path), path)
    if not isinstance(document, dict) or not isinstance(document.get("schedules"), list):
        raise BadUsage(f"{path}: must be an object with `schedules`, a list")
    if unknown := sorted(str(name) for name in document.keys() - {"schedules", "labels"}):
        raise BadUsage(f"{path}: {unknown[0]!r} is not known; there are `schedules` and `labels`")
    entries = document["schedules"]
    if len(entries) > MAX_SCHEDULES:
        raise BadUsage(f"{path}: has {len(entries)} schedules; {MAX_SCHEDULES} is the most")
    shared_labels = document.get("labels") or {}
    if not isinstance(shared_labels, dict):
        raise BadUsage(f"{path}: labels: must be an object, such as team: billing")
    now, wanted, mistakes = datetime.now(UTC), dict[str, Wanted](), list[str]()
    for number, entry in enumerate(entries, start=1):
        read = _read_entry(entry, shared_labels, now, max_payload_bytes)
        place = f"schedule {number}" + (f" ({entry['id']})" if isinstance(entry, dict) and "id" in entry else "")
        if isinstance(read, Wanted):
            if read.id in wanted:
                mistakes.append(f"{place}: id: is there twice")
            wanted[read.id] = read
        else:
            mistakes += [f"{place}: {error}" for error in read]
    if mistakes:
        more = f"\n… and {len(mistakes) - MAX_MISTAKES_SHOWN} more" if len(mistakes) > MAX_MISTAKES_SHOWN else ""
        raise BadUsage(f"{path}:\n" + "\n".join(mistakes[:MAX_MISTAKES_SHOWN]) + more)
    return list(wanted.values())


def _text(path: str) -> str:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadUsage(f"--file: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadUsage(f"--file: {path} is not UTF-8") from None
    if len(text) > MAX_FILE_BYTES:
        raise BadUsage(f"--file: {path} is longer than {MAX_FILE_BYTES // 1024 // 1024} MiB")
    return text


def _parse(text: str, path: str) -> Any:  # noqa: ANN401 - any document
    try:
        return _PlainYaml().load(text)
    except (YAMLError, ValueError) as error:
        raise BadUsage(f"{path}: is not YAML: {' '.join(str(error).split())[:300]}") from None


def _read_entry(
    entry: object, shared_labels: Mapping[str, Any], now: datetime, max_payload_bytes: int
) -> Wanted | tuple[str, ...]:
    if not isinstance(entry, dict):
        return ("must be an object",)
    if "revision" in entry:
        return ("revision: is given by apply, which raises it where something differs",)
    content = {str(name): value for name, value in entry.items() if value is not None}
    own = content.get("labels")
    if shared_labels and (own is None or isinstance(own, dict)):
        content["labels"] = {**shared_labels, **(own or {})}
    try:
        body = orjson.dumps(content)
    except TypeError as error:
        return (f"cannot be written as JSON: {error}",)
    read = read_command(RawCommand(body, REQUEST_TYPE, ""), now, max_payload_bytes)
    if isinstance(read, Refused):
        return read.errors
    if not isinstance(read, Schedule):
        raise TypeError(f"a request was read as {type(read).__name__}")
    return Wanted(content, read)
