"""After a downtime a process writes a few lines about late occurrences, and summaries of the others."""

from datetime import UTC, datetime, timedelta

from shared.runtime.limited_lines import MAX_FULL_LINES, LimitedLines, Summary

DUE = datetime(2027, 1, 31, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def add(lines: LimitedLines, number: int, reason: str = "overdue") -> int:
    """Add that many, the oldest last, and return how many have lines of their own."""
    return sum(lines.add(f"{reason}-{n}", DUE - n * SECOND, (100 + n) * SECOND, reason) for n in range(number))


def test_the_first_have_lines_of_their_own_and_the_others_are_summed_up_by_reason() -> None:
    lines = LimitedLines()
    assert add(lines, MAX_FULL_LINES) == MAX_FULL_LINES
    assert add(lines, 49_990) == 0
    assert add(lines, 10, "refused by the broker") == 0
    assert lines.take_summary() == Summary(
        count=50_000,
        by_reason={"overdue": 49_990, "refused by the broker": 10},
        oldest_id="overdue-49989",
        oldest_due_at="2027-01-30T19:06:51Z",
        late_seconds=50_089.0,
    )
    assert lines.take_summary() is None


def test_while_it_goes_on_there_are_summaries_alone_and_after_a_quiet_time_lines_again() -> None:
    lines = LimitedLines()
    add(lines, MAX_FULL_LINES + 1)
    assert lines.take_summary()
    assert add(lines, 2) == 0
    again = lines.take_summary()
    assert again
    assert (again.count, again.oldest_id) == (2, "overdue-1")
    assert lines.take_summary() is None, "nothing came"
    assert add(lines, 2) == 2


def test_a_few_are_not_summed_up_at_all() -> None:
    lines = LimitedLines()
    for _ in range(MAX_FULL_LINES):
        assert add(lines, 1) == 1
        assert lines.take_summary() is None
