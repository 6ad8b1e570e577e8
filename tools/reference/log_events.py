"""The log events of the services: names, levels and fields from the calls that log them, and a sentence for each, from
`log_sentences.py`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.reference.calls import calls, services
from tools.reference.log_sentences import FAMILIES, SENTENCES
from tools.reference.markdown import code, page, table

LEVELS = ("debug", "info", "warning", "error", "critical")


@dataclass(slots=True)
class LogEvent:
    name: str
    levels: set[str] = field(default_factory=set)
    fields: list[str] = field(default_factory=list)
    packages: set[str] = field(default_factory=set)


def log_events() -> dict[str, LogEvent]:
    found: dict[str, LogEvent] = {}
    for call in calls(_logs):
        for name in _names(call.node.args[0]):
            event = found.setdefault(name, LogEvent(name))
            event.levels.add(call.node.func.attr if isinstance(call.node.func, ast.Attribute) else "")
            event.packages.add(call.package)
            fields = [keyword.arg for keyword in call.node.keywords if keyword.arg and keyword.arg != "exc_info"]
            event.fields += [each for each in fields if each not in event.fields]
    return found


def _logs(call: ast.Call) -> bool:
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="parser"))):
            return False  # of a command line
        case ast.Call(func=ast.Attribute(attr=level), args=[ast.Constant(value=str()) | ast.JoinedStr(), *_]):
            return level in LEVELS
    return False


def _names(name: ast.expr) -> Iterator[str]:
    match name:
        case ast.Constant(value=str(event)):
            yield event
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
            yield from FAMILIES[start]


def log_events_page() -> str:
    events = log_events()
    if forgotten := sorted(events.keys() ^ SENTENCES.keys()):
        raise ValueError(f"tools/reference/log_sentences.py and the code differ: {', '.join(forgotten)}")
    rows = [
        (
            code(name),
            ", ".join(sorted(events[name].levels, key=LEVELS.index)),
            services(events[name].packages),
            sentence,
            ", ".join(code(each) for each in events[name].fields),
        )
        for name, sentence in SENTENCES.items()
    ]
    return page(
        "Log events",
        "the calls that log, and tools/reference/log_sentences.py",
        "A JSON object per line on standard error; in colour on a terminal. `event` is one of the names below, and "
        "does not change with its wording. With it come `service`, `level` and `timestamp`, the fields below and, "
        "where the line is about one job or occurrence, `id`, `idempotency_key` and `traceparent`. What is never in a "
        "line: [operations](../operations/monitoring.md#logs).",
        table(("event", "level", "service", "says", "fields"), rows),
    )
