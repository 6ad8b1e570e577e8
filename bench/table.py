"""Figures as a person reads them."""

from collections.abc import Sequence

from rich.table import Table

from bench.figures import Cost, Figure

MARKS = {True: "[green]✓[/]", False: "[bold red]✗[/]", None: ""}


def as_line(figure: Figure) -> str:
    beside = f", {figure.beside.what} {_number(figure.beside.value)}" if figure.beside else ""
    ratio = f", ratio {figure.ratio:.2f}" if figure.ratio is not None else ""
    goal = f" {MARKS[figure.met]} goal {figure.goal}" if figure.goal else ""
    return f"{_named(figure)}: [bold]{_number(figure.value)}[/] {figure.unit}{beside}{ratio}{goal}"


def as_table(figures: Sequence[Figure]) -> Table:
    table = Table()
    for heading, justify in (
        ("", "left"),
        ("measured", "left"),
        ("figure", "right"),
        ("unit", "left"),
        ("beside, in the same run", "left"),
        ("", "right"),
        ("ratio", "right"),
        ("goal", "right"),
        ("", "left"),
        ("CPU s / 1,000", "right"),
        ("Postgres'", "right"),
        ("RabbitMQ's", "right"),
        ("MB", "right"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for before, figure in zip([None, *figures], figures, strict=False):
        if before is not None and before.of != figure.of:
            table.add_section()
        table.add_row(figure.of if before is None or before.of != figure.of else "", *_cells(figure))
    return table


def _cells(figure: Figure) -> list[str]:
    return [
        _named(figure),
        _number(figure.value),
        figure.unit,
        figure.beside.what if figure.beside else "",
        _number(figure.beside.value) if figure.beside else "",
        f"{figure.ratio:.2f}" if figure.ratio is not None else "",
        str(figure.goal or ""),
        MARKS[figure.met],
        *(_costs(figure.cost) if figure.cost else ()),
    ]


def _costs(cost: Cost) -> list[str]:
    spent = (cost.cpu_ms_per_1000, cost.postgres_ms_per_1000, cost.rabbitmq_ms_per_1000)
    return [*("" if each is None else f"{each / 1000:.3f}" for each in spent), f"{cost.resident_mb:.0f}"]


def _named(figure: Figure) -> str:
    return f"{figure.what} ({figure.note})" if figure.note else figure.what


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
