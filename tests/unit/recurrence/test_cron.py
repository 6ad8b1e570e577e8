"""cron expressions: what each field takes, the days it means, and the same rules at gaps and folds as everywhere."""

from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from shared.recurrence import BadRule, RuleSpec, compile_rule
from tests.unit.recurrence.reading import list_times, walk
from tests.unit.recurrence.rules_at_random import repeatable

START = "2025-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 9 * * *", ["2025-01-01 09:00", "2025-01-02 09:00"]),
        ("*/20 * * * *", ["2025-01-01 00:00", "2025-01-01 00:20", "2025-01-01 00:40", "2025-01-01 01:00"]),
        ("5,35 8-10 * * *", ["2025-01-01 08:05", "2025-01-01 08:35", "2025-01-01 09:05", "2025-01-01 09:35"]),
        ("0 8-18/5 * * *", ["2025-01-01 08:00", "2025-01-01 13:00", "2025-01-01 18:00", "2025-01-02 08:00"]),
        ("0 0 * * MON-FRI", ["2025-01-01 00:00", "2025-01-02 00:00", "2025-01-03 00:00", "2025-01-06 00:00"]),
        ("0 0 * * fri-sun", ["2025-01-03 00:00", "2025-01-04 00:00", "2025-01-05 00:00", "2025-01-10 00:00"]),
        ("0 0 * * 0", ["2025-01-05 00:00", "2025-01-12 00:00"]),
        ("0 0 * * 7", ["2025-01-05 00:00", "2025-01-12 00:00"]),
        ("0 0 1 JAN,jul *", ["2025-01-01 00:00", "2025-07-01 00:00", "2026-01-01 00:00"]),
        ("0 0 L * *", ["2025-01-31 00:00", "2025-02-28 00:00", "2025-03-31 00:00"]),
        (
            "0 0 LW * *",
            ["2025-01-31 00:00", "2025-02-28 00:00", "2025-03-31 00:00", "2025-04-30 00:00", "2025-05-30 00:00"],
        ),
        ("0 0 * * 5L", ["2025-01-31 00:00", "2025-02-28 00:00", "2025-03-28 00:00"]),
        ("0 0 * * MON#1", ["2025-01-06 00:00", "2025-02-03 00:00", "2025-03-03 00:00"]),
        ("0 0 * * 1#5", ["2025-03-31 00:00", "2025-06-30 00:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 0 * 2 MON#5", ["2044-02-29 00:00", "2072-02-29 00:00", "2112-02-29 00:00"]),
        # Day of month and day of week: either, as soon as neither begins with a star.
        ("0 0 13 * FRI", ["2025-01-03 00:00", "2025-01-10 00:00", "2025-01-13 00:00", "2025-01-17 00:00"]),
        ("0 0 */2 * FRI", ["2025-01-03 00:00", "2025-01-17 00:00", "2025-01-31 00:00"]),
        ("@hourly", ["2025-01-01 00:00", "2025-01-01 01:00"]),
        ("@daily", ["2025-01-01 00:00", "2025-01-02 00:00"]),
        ("@Midnight", ["2025-01-01 00:00", "2025-01-02 00:00"]),
        ("@weekly", ["2025-01-05 00:00", "2025-01-12 00:00"]),
        ("@monthly", ["2025-01-01 00:00", "2025-02-01 00:00"]),
        ("@yearly", ["2025-01-01 00:00", "2026-01-01 00:00"]),
        ("@annually", ["2025-01-01 00:00", "2026-01-01 00:00"]),
        ("  0   9  *  *  *  ", ["2025-01-01 09:00"]),
    ],
)
def test_an_expression_means(cron: str, expected: list[str]) -> None:
    assert list_times(len(expected), start_at=START, cron=cron) == expected


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        ("60 * * * *", "minute: '60' is not understood"),
        ("* 24 * * *", "hour: '24' is not understood"),
        ("* * 32 * *", "day-of-month: '32' is not understood; it is 1 to 31, or L for the last"),
        ("0 9 * * 5-1", "day-of-week: '5-1' is not understood; it is 0 to 7, or SUN to SAT, and a range goes from low"),
        ("* * * 13 *", "month: '13' is not understood"),
        ("* * * * 8", "day-of-week: '8' is not understood"),
        ("* * * * MON#6", "day-of-week: 'MON#6' is not understood"),
        ("*/0 * * * *", "minute: '*/0' is not understood"),
        ("0 0 30 2 *", "day-of-month: no month of '2' has a day '30'"),
        ("0 0 0 * * *", "at most 500 characters; six are given: seconds are not supported"),
        ("@reboot", "cron: @reboot is not one of @yearly"),
        ("", "cron: expected the five fields"),
        ("0 " * 300, "at most 500 characters"),
        ("1," * 200 + "1 * * * *", None),
        ("9" * 480 + " * * * *", "minute: '999"),
        ("0 0 ? * *", "day-of-month: '?' is not understood; any is *"),
    ],
)
def test_an_error_names_the_field(cron: str, message: str | None) -> None:
    if message is None:
        assert compile_rule(RuleSpec(start_at=START, cron=cron)).first() is not None
        return
    with pytest.raises(BadRule) as refused:
        compile_rule(RuleSpec(start_at=START, cron=cron))
    assert message in str(refused.value)
    assert refused.value.field == "cron"


# cron, start, dst fields, the first occurrences; all in New York
AROUND_A_CHANGE: dict[str, tuple[str, str, dict[str, str], list[str]]] = {
    "a time of day shifts out of the gap": (
        "30 2 * * *",
        "2024-03-09T00:00:00",
        {},
        ["2024-03-09 07:30", "2024-03-10 07:30", "2024-03-11 06:30"],
    ),
    "or is left out": (
        "30 2 * * *",
        "2024-03-09T00:00:00",
        {"dst_gap": "skip"},
        ["2024-03-09 07:30", "2024-03-11 06:30"],
    ),
    "a time of day has one occurrence in the fold": (
        "30 1 * * *",
        "2024-11-02T00:00:00",
        {},
        ["2024-11-02 05:30", "2024-11-03 05:30", "2024-11-04 06:30"],
    ),
    "every half hour goes on through the gap": (
        "*/30 * * * *",
        "2024-03-10T01:00:00",
        {},
        ["2024-03-10 06:00", "2024-03-10 06:30", "2024-03-10 07:00", "2024-03-10 07:30"],
    ),
    "and through the fold": (
        "*/30 * * * *",
        "2024-11-03T01:00:00",
        {},
        ["2024-11-03 05:00", "2024-11-03 05:30", "2024-11-03 06:00", "2024-11-03 06:30", "2024-11-03 07:00"],
    ),
    "no minute of an hour that does not exist is an occurrence": (
        "* 2 * * *",
        "2024-03-09T02:59:00",
        {},
        ["2024-03-09 07:59", "2024-03-11 06:00"],
    ),
    "all hours by name are every hour": (
        "0 0-23 * * *",
        "2024-11-03T00:00:00",
        {},
        ["2024-11-03 04:00", "2024-11-03 05:00", "2024-11-03 06:00", "2024-11-03 07:00"],
    ),
    "a start in the first pass still has the second before it": (
        "15 1 * * *",
        "2024-11-03T01:30:00",
        {"dst_fold": "last"},
        ["2024-11-03 06:15", "2024-11-04 06:15"],
    ),
}


@pytest.mark.parametrize(("cron", "start", "dst", "expected"), AROUND_A_CHANGE.values(), ids=AROUND_A_CHANGE.keys())
def test_around_a_change(cron: str, start: str, dst: dict[str, Any], expected: list[str]) -> None:
    assert list_times(len(expected), start_at=start, timezone="America/New_York", cron=cron, **dst) == expected


def field(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.tuples(st.one_of(st.just("*"), span), st.integers(1, high)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    single = st.one_of(number.map(str), span, step, *(st.just(name) for name in names))
    return st.one_of(st.just("*"), st.lists(single, min_size=1, max_size=3).map(",".join))


@repeatable
@given(
    st.tuples(field(0, 59), field(0, 23), field(1, 31, ("L", "LW")), field(1, 12), field(0, 7, ("5L", "MON#2"))),
    st.datetimes(datetime(1950, 1, 1), datetime(2150, 1, 1)),  # noqa: DTZ001 - hypothesis takes them naive
)
def test_in_utc_the_occurrences_of_every_expression_are_those_of_cronsim(
    fields: tuple[str, ...], start: datetime
) -> None:
    start = start.replace(microsecond=0, tzinfo=UTC)
    text = " ".join(fields)
    try:
        found = [occurrence.at for occurrence in walk(12, start_at=start.isoformat(), cron=text)]
    except BadRule:
        return
    one_second_before = datetime.fromtimestamp(start.timestamp() - 1, UTC)
    expected = list(islice(CronSim(text, one_second_before), 12))
    assert found[: len(expected)] == expected
