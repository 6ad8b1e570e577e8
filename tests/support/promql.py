"""PromQL as Prometheus reads it: which series an expression selects."""

from collections.abc import Iterator

from promql_parser import (
    AggregateExpr,
    BinaryExpr,
    Call,
    Expr,
    MatrixSelector,
    ParenExpr,
    SubqueryExpr,
    UnaryExpr,
    VectorSelector,
    parse,
)


def selectors(expression: str) -> Iterator[str]:
    """Every selector of the expression, as an expression of its own."""
    yield from _selectors(parse(expression))


def _selectors(part: Expr) -> Iterator[str]:
    match part:
        case VectorSelector():
            yield str(part)
        case MatrixSelector():
            yield str(part.vector_selector)
        case BinaryExpr():
            yield from _selectors(part.lhs)
            yield from _selectors(part.rhs)
        case Call():
            for argument in part.args:
                yield from _selectors(argument)
        case AggregateExpr() | ParenExpr() | SubqueryExpr() | UnaryExpr():
            yield from _selectors(part.expr)
        case _:  # a number or a text
            return
