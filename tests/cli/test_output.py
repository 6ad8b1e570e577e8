"""How results look to a person: tables that fit the terminal, times and durations in words."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from rich.console import Console

from cli.errors import BadUsage
from cli.output import Output
from cli.table_layout import Column, fit, printable, wrap
from shared.reading.times import describe_distance, describe_duration, full_time, short_time

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
UUID = "0b8e7c52-7b1e-4b46-8f0c-a30d2fdf20b8"

JOBS = (
    Column("id"),
    Column("status", rank=4),
    Column("topic", rank=3),
    Column("next_run_at"),
    Column("schedule", rank=1, wraps=16),
    Column("owner", rank=5),
)
ROW: dict[str, Any] = {
    "id": UUID,
    "status": "pending",
    "topic": "invoices.reminder",
    "next_run_at": NOW + timedelta(days=3),
    "schedule": "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9",
    "owner": None,
}


def printed(width: int, columns: tuple[Column, ...] = JOBS, rows: tuple[dict[str, Any], ...] = (ROW,)) -> str:
    console = Console(width=width, highlight=False)
    output = Output(as_json=False, zone=BERLIN, now=NOW, width=width, console=console)
    with console.capture() as capture:
        output.table(columns, rows)
    return capture.get()


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 40])
def test_no_line_is_wider_than_the_terminal_and_no_id_or_instant_is_broken(width: int) -> None:
    text = printed(width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines()), text
    assert UUID in text or width == 40
    assert "2030-06-04 14:00" in text
    assert "in 3 days" in text


def test_columns_of_the_highest_rank_are_dropped_first_and_the_reader_is_told() -> None:
    wide, narrow = printed(200), printed(90)
    assert "owner" in wide
    assert "Not shown" not in wide
    assert "Not shown in 90 columns: status, topic, owner. --json has them." in narrow
    assert [line.split()[-1] for line in narrow.splitlines()[2:4]] == ["FREQ=MONTHLY;", "BYMONTHDAY=-1;BYHOUR=9"]


def test_a_terminal_without_room_for_the_most_important_columns_gets_a_sheet_for_each_row() -> None:
    text = printed(60, JOBS, (ROW, {**ROW, "id": "x" * 150}))
    assert "id" in text
    assert UUID in text
    assert "next run at  2030-06-04 14:00:00 CEST, in 3 days" in text


def test_a_column_without_a_value_goes_before_one_with_a_value() -> None:
    columns = (Column("id"), Column("a", rank=1), Column("b", rank=2))
    layout = fit(columns, ("id", "a", "b"), [("x" * 10, "-", "yes")], 15)
    assert layout is not None
    assert layout.shown == (0, 2)


def test_prose_is_wrapped_behind_spaces_and_separators() -> None:
    assert wrap("at: exactly one of at, rrule", 12) == "at: exactly\none of at,\nrrule"
    assert wrap("FREQ=DAILY;COUNT=3", 12) == "FREQ=DAILY;\nCOUNT=3"
    assert wrap("x" * 25, 10) == "xxxxxxxxxx\nxxxxxxxxxx\nxxxxx"
    assert wrap("日本語日本語", 4) == "日本\n語日\n本語"
    assert wrap("", 10) == ""


def test_a_text_from_a_message_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb\tc") == "a\\x1b[2Jb\\tc"
    assert "\x1b" not in printed(80, (Column("id"),), ({"id": "a\x1b[2Jb"},))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ms"), (0.000035, "0.035 ms"), (0.0042, "4.2 ms"), (0.34, "340 ms"), (1.5, "1.5 s"), (45, "45 s"),
        (119, "119 s"), (120, "2 min"), (3600, "60 min"), (7200, "2 h"), (259_200.081, "3 days"),
        (400 * 86_400, "400 days"), (800 * 86_400, "2 years"), (-5, "-5 s"),
    ],
)  # fmt: skip
def test_durations_have_one_unit_that_a_person_would_choose(seconds: float, words: str) -> None:
    assert describe_duration(timedelta(seconds=seconds)) == words


def test_instants_are_shown_in_the_zone_of_the_reader_beside_their_distance() -> None:
    soon, later = NOW + timedelta(hours=3), NOW + timedelta(days=200, milliseconds=5)
    assert short_time(soon, BERLIN, NOW) == "17:00:00, in 3 h"
    assert short_time(later, BERLIN, NOW) == "2030-12-18 13:00, in 200 days"
    assert full_time(soon, BERLIN, NOW) == "2030-06-01 17:00:00 CEST, in 3 h"
    assert full_time(later, BERLIN, NOW) == "2030-12-18 13:00:00.005 CET, in 200 days"
    assert describe_distance(NOW - timedelta(minutes=2), NOW) == "2 min ago"
    assert describe_distance(NOW + timedelta(milliseconds=400), NOW) == "now"


def test_a_heading_names_the_zone_of_its_times() -> None:
    assert "next run at Europe/Berlin" in printed(200)


def test_a_sheet_names_the_fields_of_objects_and_shows_numbers_as_decimals() -> None:
    console = Console(width=80, highlight=False)
    output = Output(as_json=False, zone=UTC, now=NOW, width=80, console=console)
    with console.capture() as capture:
        output.sheet({"webhook": {"url": "https://example.com", "secret": "main"}, "took": 0.000035, "none": None})
    assert [line.split() for line in capture.get().splitlines()] == [
        ["webhook", "url", "https://example.com"],
        ["webhook", "secret", "main"],
        ["took", "0.000035"],
    ]


def test_a_zone_that_does_not_exist_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadUsage, match="--timezone: 'Europe/Berln' is not an IANA time zone"):
        Output.of(None, "Europe/Berln")
    monkeypatch.setenv("DUEBELL_TIMEZONE", "Europe/Berlin")
    assert Output.of().zone == BERLIN
