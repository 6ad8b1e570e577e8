"""The command line: every command with its arguments and options, from the application that typer runs."""

from collections.abc import Iterator
from typing import Any

import typer

from cli.app import app
from tools.reference.markdown import code, page, table


def commands() -> dict[str, Any]:
    """Return each command under what a user types for it, such as `deliveries list`."""
    return dict(_below("", typer.main.get_command(app)))


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer gives its commands no public type
    for name, each in getattr(command, "commands", {}).items():
        here = f"{path} {name}".strip()
        if each.hidden:
            continue
        if hasattr(each, "commands"):
            yield from _below(here, each)
        else:
            yield here, each


def command_line_page() -> str:
    sections = [section for name, command in commands().items() for section in _section(name, command)]
    return page(
        "Commands and options",
        "cli/",
        "What `duebell COMMAND --help` says, for all commands. How to use them: "
        "[the command line](../command-line.md).",
        *sections,
    )


def _section(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401
    about, _, examples = str(command.help or "").partition("Examples:")
    arguments = " ".join(parameter.make_metavar() if False else _typed(parameter) for parameter in _arguments(command))
    yield f"## duebell {name}"
    yield code(" ".join(word for word in ("duebell", name, arguments, "[OPTIONS]") if word))
    yield " ".join(about.split())
    rows = [(_names(parameter), _help(parameter)) for parameter in command.params if not parameter.hidden]
    if rows:
        yield table(("argument or option", "meaning"), rows)
    if lines := [line.strip() for line in examples.splitlines() if line.strip()]:
        yield "\n".join(f"- {code(line)}" for line in lines)


def _arguments(command: Any) -> list[Any]:  # noqa: ANN401
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


def _typed(parameter: Any) -> str:  # noqa: ANN401
    name = str(parameter.metavar or parameter.name).upper()
    many = f"{name}…" if parameter.nargs == -1 else name
    return many if parameter.required else f"[{many}]"


def _names(parameter: Any) -> str:  # noqa: ANN401
    if parameter.param_type_name == "argument":
        return code(_typed(parameter))
    return ", ".join(code(option) for option in (*parameter.opts, *parameter.secondary_opts))


def _help(parameter: Any) -> str:  # noqa: ANN401
    default = parameter.default
    shown = default is not None and not isinstance(default, bool) and default not in ((), [])
    value = getattr(default, "value", default)
    return " ".join(word for word in (parameter.help or "", f"Default: {code(str(value))}." if shown else "") if word)
