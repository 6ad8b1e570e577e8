"""Reads the filters of a page from its address. A filter that cannot be read is left out, and the page says so."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import TypeVar

from shared.contract.fields import parse_date_time
from shared.contract.labels import parse_labels

Value = TypeVar("Value")
MAX_TEXT_LENGTH = 200
_NEXT_LABEL = re.compile(r",(?=[^,=]*=)")


class Filters:
    """The filters of an address. `problems` has one line for each that could not be read."""

    def __init__(self, query: Mapping[str, str], zone: tzinfo) -> None:
        self._query = query
        self._zone = zone
        self.problems: list[str] = []

    def text(self, name: str) -> str | None:
        """Return the trimmed text, or None if it is empty."""
        text = self._query.get(name, "").strip().replace("\0", "")
        if len(text) > MAX_TEXT_LENGTH:
            self.problems.append(f"{name}: has more than {MAX_TEXT_LENGTH} characters")
            return None
        return text or None

    def read(self, name: str, parse: Callable[[str], Value]) -> Value | None:
        """Return what `parse` makes of the text; None if it is empty or `parse` refuses it."""
        return self._parsed(name, self._query.get(name, "").strip(), parse)

    def place(self, name: str, parse: Callable[[str], Value]) -> Value | None:
        """Return what `parse` makes of a place in a list. It ends with an id, whose white space belongs to it."""
        return self._parsed(name, self._query.get(name, ""), parse)

    def _parsed(self, name: str, text: str, parse: Callable[[str], Value]) -> Value | None:
        text = text.replace("\0", "")
        if not text:
            return None
        try:
            return parse(text)
        except ValueError:
            self.problems.append(f"{name}: {text[:60]!r} is not one that this page knows")
            return None

    def labels(self, name: str) -> dict[str, str]:
        """Return labels that are written key=value, with commas between them. A value may have commas, too."""
        return self.read(name, lambda text: parse_labels([part.strip() for part in _NEXT_LABEL.split(text)])) or {}

    def moment(self, name: str) -> datetime | None:
        """Return an instant. A local time is one in the reader's zone, with or without seconds."""

        def parse(text: str) -> datetime:
            complete = f"{text}:00" if len(text) == len("2026-01-01T09:00") else text
            moment = parse_date_time(complete)
            return moment if moment.tzinfo else moment.replace(tzinfo=self._zone)

        return self.read(name, parse)
